// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// writesNamespace is where ConfigMaps are written.
	writesNamespace = "kubexm-writes"
	// answersWithin is how long one request may take.
	answersWithin = 2 * time.Second
	// writeEvery is how often one is made at most: the cluster has other things to do.
	writeEvery = 50 * time.Millisecond
)

// Writes makes one ConfigMap after the other, until it is stopped.
type Writes struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	done   sync.WaitGroup
	// Of the goroutine that writes, until done.
	acknowledged []string
	failed       int
	away         Gap
}

// Gap is a time in which no write was acknowledged.
type Gap struct {
	Since  time.Time
	Length time.Duration
	// Because is what the last request in it failed with, nil if none did.
	Because error
}

// Outcome is what became of writes.
type Outcome struct {
	// Acknowledged is how many writes the API server has said were made, Failed how many requests it has not.
	Acknowledged, Failed int
	// Lost are the names of those that were acknowledged and are not there.
	Lost []string
	// Away is the longest time between two acknowledged writes.
	Away Gap
}

func (o Outcome) String() string {
	said := fmt.Sprintf("%d writes acknowledged, %d lost, %d requests failed, longest time between two writes %.1f s, since %s",
		o.Acknowledged, len(o.Lost), o.Failed, o.Away.Length.Seconds(), o.Away.Since.UTC().Format(time.TimeOnly))
	if o.Away.Because != nil {
		said += ": " + o.Away.Because.Error()
	}
	return said
}

// Write begins to write.
func Write(ctx context.Context, client kubernetes.Interface) (*Writes, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: writesNamespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create the namespace %s: %w", writesNamespace, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Writes{client: client, cancel: cancel}
	w.done.Go(func() { w.run(ctx) })
	return w, nil
}

func (w *Writes) run(ctx context.Context) {
	gap := Gap{Since: time.Now()}
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name := fmt.Sprintf("write-%06d", i)
		switch err := w.write(ctx, name); {
		case err == nil:
			w.acknowledged = append(w.acknowledged, name)
			if gap.Length = time.Since(gap.Since); gap.Length > w.away.Length {
				w.away = gap
			}
			gap = Gap{Since: time.Now()}
		case !errors.Is(err, context.Canceled):
			w.failed++
			gap.Because = err
		}
	}
}

func (w *Writes) write(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	_, err := w.client.CoreV1().ConfigMaps(writesNamespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// Stop ends the writes, looks for them, and takes them away.
func (w *Writes) Stop(ctx context.Context) (Outcome, error) {
	w.cancel()
	w.done.Wait()
	o := Outcome{Acknowledged: len(w.acknowledged), Failed: w.failed, Away: w.away}
	list, err := w.client.CoreV1().ConfigMaps(writesNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return o, fmt.Errorf("list what was written: %w", err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	for _, name := range w.acknowledged {
		if !there[name] {
			o.Lost = append(o.Lost, name)
		}
	}
	if err := w.client.CoreV1().Namespaces().Delete(ctx, writesNamespace, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return o, fmt.Errorf("delete the namespace %s: %w", writesNamespace, err)
	}
	return o, nil
}
