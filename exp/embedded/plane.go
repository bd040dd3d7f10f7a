// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

// Plane is a running management plane.
type Plane struct {
	config     *rest.Config
	kubeconfig []byte
	client     client.WithWatch

	// undo ends what was started, last first. Each entry may wait until its context is over.
	undo []func(context.Context) error

	done    chan struct{}
	failure error // written before done is closed

	stopping chan struct{}
	stop     sync.Once
	stopErr  error
}

// Start starts a plane, or goes on with the one that an earlier process left in o.Dir, and returns when it is ready for
// work: the API server serves all kinds, the reconcilers run, the webhooks answer.
//
// ctx limits the starting alone: the plane runs until Stop. The error is an *InUseError if another process has the
// directory. If a child failed, the error names it and ends with the last lines of its log.
func Start(ctx context.Context, o Options) (*Plane, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("management plane: %w", err)
	}
	p := &Plane{done: make(chan struct{}), stopping: make(chan struct{})}
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := p.start(starting, cancel, o); err != nil {
		// The end of a child is why whatever else has failed.
		if exit := new(child.ExitError); errors.As(context.Cause(starting), &exit) {
			err = exit
		}
		return nil, fmt.Errorf("management plane: %w", errors.Join(err, p.unwind(context.WithoutCancel(ctx))))
	}
	return p, nil
}

func (p *Plane) start(ctx context.Context, cancel context.CancelCauseFunc, o Options) error {
	begin := time.Now()
	// The mode of a directory that was there already is not left to chance: it keeps others from keys and from etcd.
	if err := errors.Join(os.MkdirAll(o.Dir, 0o700), os.Chmod(o.Dir, 0o700)); err != nil {
		return err
	}
	held, err := lock(o.Dir)
	if err != nil {
		return err
	}
	p.later(func(context.Context) error { return held.Close() })

	logFile, err := child.OpenLog(filepath.Join(o.Dir, "plane.log"))
	if err != nil {
		return err
	}
	release := captureProcessLogs(logFile)
	p.later(func(context.Context) error { release(); return logFile.Close() })
	log := newLogger(logFile)

	k, err := loadKeys(o.Dir)
	if err != nil {
		return err
	}
	port, err := choosePort(o.Dir)
	if err != nil {
		return fmt.Errorf("port of the API server: %w", err)
	}
	p.config = restConfig(k, port)
	if p.kubeconfig, err = writeKubeconfig(o.Dir, p.config, k); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}

	etcd, err := startEtcd(ctx, o)
	if err != nil {
		return err
	}
	p.run(ctx, cancel, etcd)
	if err := waitEtcd(ctx, etcd, o.Dir); err != nil {
		return err
	}
	apiServer, err := startAPIServer(ctx, o, port)
	if err != nil {
		return err
	}
	p.run(ctx, cancel, apiServer)

	// While the API server starts.
	wanted, err := definitions(o.CRDs)
	if err != nil {
		return err
	}
	scheme, err := newScheme(o.AddToScheme)
	if err != nil {
		return fmt.Errorf("AddToScheme: %w", err)
	}

	if err := waitAPIServer(ctx, apiServer, p.config); err != nil {
		return err
	}
	controllerManager, err := startControllerManager(ctx, o)
	if err != nil {
		return err
	}
	p.run(ctx, cancel, controllerManager)
	if err := installDefinitions(ctx, p.config, wanted); err != nil {
		return err
	}
	if p.client, err = client.NewWithWatch(p.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := p.createNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	m, err := startManager(ctx, o, p.config, scheme, k, log)
	if err != nil {
		return fmt.Errorf("manager: %w%s", err, child.Tail(filepath.Join(o.Dir, "plane.log")))
	}
	p.later(m.stop)

	go p.watch(m, etcd, apiServer, controllerManager)
	o.Log.Info("Management plane is ready", "dir", o.Dir, "server", p.config.Host, "after", time.Since(begin).Round(time.Millisecond).String())
	return nil
}

func (p *Plane) later(undo func(context.Context) error) { p.undo = append(p.undo, undo) }

// run sees to it that process is stopped with the plane, and that the start, of which ctx is, does not go on without it.
func (p *Plane) run(ctx context.Context, cancel context.CancelCauseFunc, process *child.Process) {
	p.later(process.Stop)
	go func() {
		select {
		case <-process.Done():
			cancel(process.Err())
		case <-ctx.Done():
		}
	}()
}

func (p *Plane) createNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	err := p.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// watch ends the reconcilers as soon as a part of the plane has ended that nobody asked to.
func (p *Plane) watch(m *manager, etcd, apiServer, controllerManager *child.Process) {
	defer close(p.done)
	select {
	case <-p.stopping:
		return
	case <-m.done:
		p.failure = fmt.Errorf("manager: %w", m.err)
	case <-etcd.Done():
		p.failure = etcd.Err()
	case <-apiServer.Done():
		p.failure = apiServer.Err()
	case <-controllerManager.Done():
		p.failure = controllerManager.Err()
	}
	m.cancel()
}

// Done is closed when the plane has ended: because of Stop, or because a part of it failed.
func (p *Plane) Done() <-chan struct{} { return p.done }

// Err says which part failed, with the last lines of its log. It is nil while the plane runs and after Stop.
func (p *Plane) Err() error {
	select {
	case <-p.done:
		return p.failure
	default:
		return nil
	}
}

// RESTConfig is that of the plane's administrator.
func (p *Plane) RESTConfig() *rest.Config { return rest.CopyConfig(p.config) }

// Client reads and writes at the API server itself, without a cache.
func (p *Plane) Client() client.WithWatch { return p.client }

// Kubeconfig is the administrator's, for kubectl and clusterctl; it needs no other file. It lies in the plane's
// directory as well.
func (p *Plane) Kubeconfig() []byte { return slices.Clone(p.kubeconfig) }

// Stop ends the reconcilers, then the children, and frees the directory. When ctx is over, it no longer waits for
// anything to end by itself. A second call returns what the first one did.
func (p *Plane) Stop(ctx context.Context) error {
	p.stop.Do(func() {
		close(p.stopping)
		<-p.done
		p.stopErr = p.unwind(ctx)
	})
	return p.stopErr
}

func (p *Plane) unwind(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(p.undo) {
		errs = append(errs, undo(ctx))
	}
	return errors.Join(errs...)
}
