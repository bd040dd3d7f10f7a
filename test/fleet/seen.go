// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// Unhealthy is what is wrong with the cluster, nil if it is healthy.
func (f *Fleet) Unhealthy() error {
	controlPlane := &controlplanev1.KubexmControlPlane{}
	f.Get(Name, controlPlane)
	for _, kind := range []string{
		controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
		controlplanev1.EtcdClusterHealthyCondition,
		controlplanev1.MachinesReadyCondition,
	} {
		if now := conditions.Get(controlPlane, kind); now == nil || now.Status != "True" {
			return fmt.Errorf("KubexmControlPlane: %v", now)
		}
	}
	all := f.Machines()
	if want := f.Options.ControlPlanes + f.Options.Workers; len(all) != want {
		return fmt.Errorf("there are %d Machines, not %d", len(all), want)
	}
	for i := range all {
		m := &all[i]
		if now := conditions.Get(m, clusterv1.MachineNodeReadyCondition); now == nil || now.Status != "True" {
			return fmt.Errorf("the Machine %s: %v", m.Name, now)
		}
		config := &bootstrapv1.KubexmConfig{}
		f.Get(m.Spec.Bootstrap.ConfigRef.Name, config)
		if now := conditions.Get(config, bootstrapv1.HostReadyCondition); now == nil || now.Status != "True" {
			return fmt.Errorf("the KubexmConfig %s: %v", config.Name, now)
		}
	}
	return nil
}

// Machines are all that there are.
func (f *Fleet) Machines() []clusterv1.Machine {
	all := &clusterv1.MachineList{}
	f.List(all)
	return all.Items
}

// Configs are the KubexmConfigs of all hosts.
func (f *Fleet) Configs() []bootstrapv1.KubexmConfig {
	all := &bootstrapv1.KubexmConfigList{}
	f.List(all)
	return all.Items
}

// Workload is the cluster's own API, for its administrator.
func (f *Fleet) Workload() kubernetes.Interface {
	f.T.Helper()
	kubeconfig := &corev1.Secret{}
	f.Get(Name+"-kubeconfig", kubeconfig)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Data["value"])
	must(f.T, err)
	api, err := kubernetes.NewForConfig(config)
	must(f.T, err)
	return api
}

// Events are those that were reported since others were known, in order. One that was reported again counts.
func (f *Fleet) Events(known []eventsv1.Event) []eventsv1.Event {
	all := &eventsv1.EventList{}
	f.List(all)
	is := func(a, b eventsv1.Event) bool { return a.UID == b.UID && at(a).Equal(at(b)) }
	found := slices.DeleteFunc(all.Items, func(e eventsv1.Event) bool {
		return slices.ContainsFunc(known, func(k eventsv1.Event) bool { return is(e, k) })
	})
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return at(a).Compare(at(b)) })
	return found
}

// at is when an event was reported last.
func at(e eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case e.EventTime.IsZero(): // it was told by the API of old
		return e.DeprecatedLastTimestamp.Time
	}
	return e.EventTime.Time
}

// Told are the events since others were known, as a person would read them, with seconds since something began.
func (f *Fleet) Told(known []eventsv1.Event, began time.Time) string {
	var lines []string
	for _, e := range f.Events(known) {
		kind := ""
		if e.Type == corev1.EventTypeWarning {
			kind = "! "
		}
		note, _, more := strings.Cut(e.Note, "\n")
		if more {
			note += " …"
		}
		lines = append(lines, fmt.Sprintf("%6.1f s  %s/%s  %s%s: %s", at(e).Sub(began).Seconds(), e.Regarding.Kind, e.Regarding.Name, kind, e.Reason, note))
	}
	return strings.Join(lines, "\n")
}
