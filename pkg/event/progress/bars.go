// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// bars draws a bar per host. Bars stay open until close: a host that failed may be run again.
type bars struct {
	all  *mpb.Progress
	open map[*place]*bar
}

type bar struct {
	*mpb.Bar
	mu    sync.Mutex // the drawing goroutine reads
	count string
	now   string
}

func newBars(w io.Writer) *bars {
	return &bars{
		all: mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh()), open: make(map[*place]*bar),
	}
}

func (b *bars) update(p *place, _ event.Event) {
	if p == nil {
		return
	}
	x, ok := b.open[p]
	if !ok {
		x = &bar{}
		style := mpb.BarStyle().Lbound("").Filler("█").Tip("▌").Padding(" ").Rbound("")
		x.Bar = b.all.New(0, style, mpb.BarWidth(28),
			mpb.PrependDecorators(
				decor.Name(p.name, decor.WCSyncSpaceR), decor.Name(p.about, decor.WCSyncSpaceR),
			),
			mpb.AppendDecorators(
				decor.Any(func(decor.Statistics) string { return x.text().count }, decor.WCSyncSpace),
				decor.Any(func(decor.Statistics) string { return "  " + x.text().now }),
			))
		b.open[p] = x
	}
	x.mu.Lock()
	x.count, x.now = p.count(), p.now
	x.mu.Unlock()
	x.SetTotal(max(p.total, 1), false)
	x.SetCurrent(min(p.done, p.total)) // empty where nothing can be counted
}

// words are what stands right of a bar.
type words struct{ count, now string }

func (x *bar) text() words {
	x.mu.Lock()
	defer x.mu.Unlock()
	return words{x.count, x.now}
}

// close leaves the bars as they are, those of hosts that are through full.
func (b *bars) close() {
	for _, x := range b.open {
		x.Abort(false)
	}
	b.all.Wait()
}
