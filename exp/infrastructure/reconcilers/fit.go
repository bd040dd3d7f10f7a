// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// selectorOf selects the hosts that a machine may have.
func selectorOf(m *infrav1.KubexmMachineSpec) (labels.Selector, error) {
	if m.HostSelector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(m.HostSelector)
	if err != nil {
		return nil, fmt.Errorf("hostSelector: %w", err)
	}
	return selector, nil
}

// preference is one of a machine's.
type preference struct {
	selector labels.Selector
	weight   int
}

func preferencesOf(m *infrav1.KubexmMachineSpec) ([]preference, error) {
	var all []preference
	for i := range m.Preferences {
		p := &m.Preferences[i]
		selector, err := metav1.LabelSelectorAsSelector(&p.Selector)
		if err != nil {
			return nil, fmt.Errorf("preferences[%d].selector: %w", i, err)
		}
		all = append(all, preference{selector: selector, weight: int(p.Weight)})
	}
	return all, nil
}

// weight is how much the machine prefers a host.
func (c *claimant) weight(host *infrav1.KubexmHost) int {
	sum := 0
	for _, p := range c.preferred {
		if p.selector.Matches(labels.Set(host.Labels)) {
			sum += p.weight
		}
	}
	return sum
}

// lacks says what a host has not of what is required, "" if it has all of it. What is not known of it, it is not taken to have.
func lacks(host *infrav1.KubexmHost, required infrav1.HostCapacity) string {
	has := host.CapacityOf()
	switch {
	case required.CPUs > 0 && has.CPUs == 0:
		return "of unknown processors (say so in spec.capacity)"
	case has.CPUs < required.CPUs:
		return fmt.Sprintf("with fewer than %d processors", required.CPUs)
	case !required.Memory.IsZero() && has.Memory.IsZero():
		return "of unknown memory (say so in spec.capacity)"
	case has.Memory.Cmp(required.Memory) < 0:
		return fmt.Sprintf("with less than %s of memory", required.Memory.String())
	}
	return ""
}
