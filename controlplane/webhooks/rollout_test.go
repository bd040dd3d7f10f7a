// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func balanced(s *controlplanev1.KubexmControlPlaneSpec) {
	s.Cluster.LoadBalancer.Type = spec.LoadBalancerNodeLocal
}

func TestValidateRollout(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*controlplanev1.KubexmControlPlaneSpec)
		want   []string
	}{
		"in place": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Rollout.Strategy.Type = controlplanev1.InPlaceStrategy
		}},
		"another type": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.Rollout.Strategy.Type = "OnDelete" }, []string{"spec.rollout.strategy.type"},
		},
		"delete first, of three": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			balanced(s)
			s.Replicas, s.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To[int32](3), ptr.To[int32](0)
		}},
		"delete first, of one": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				balanced(s)
				s.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To[int32](0)
			}, []string{"spec.rollout.strategy.rollingUpdate.maxSurge"},
		},
		"two at once": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To[int32](2)
			},
			[]string{"spec.rollout.strategy.rollingUpdate.maxSurge"},
		},
		"before certificates end": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			balanced(s)
			s.Rollout.Before.CertificatesExpiryDays = 30
		}},
		"too late": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				balanced(s)
				s.Rollout.Before.CertificatesExpiryDays = 6
			}, []string{"spec.rollout.before.certificatesExpiryDays"},
		},
		"before certificates are made": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				balanced(s)
				s.Rollout.Before.CertificatesExpiryDays, s.Cluster.Certificates.ValidityDays = 60, 60
			}, []string{"spec.rollout.before.certificatesExpiryDays"},
		},
		"after a time": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			balanced(s)
			s.Rollout.After = metav1.Now()
		}},
		"of the host at which the API server is reached": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.Rollout.After, s.Rollout.Before.CertificatesExpiryDays = metav1.Now(), 30
			}, []string{"spec.rollout.after", "spec.rollout.before"},
		},
		"names": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.MachineNaming.Template = "{{ .cluster.name }}-cp-{{.random}}"
		}},
		"names without a difference": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.MachineNaming.Template = "{{ .cluster.name }}" },
			[]string{"spec.machineNaming.template"},
		},
		"names of something else": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineNaming.Template = "{{ .machine.name }}-{{ .random }}"
			},
			[]string{"spec.machineNaming.template"},
		},
		"names by a loop": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineNaming.Template = "{{range 3}}{{end}}{{ .random }}"
			},
			[]string{"spec.machineNaming.template"},
		},
		"names by a function": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineNaming.Template = `{{ .random }}{{ slice (printf "%1000s" "x") 999 }}`
			},
			[]string{"spec.machineNaming.template"},
		},
		"names by a function's result": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineNaming.Template = `{{ .random | printf "%s" }}`
			},
			[]string{"spec.machineNaming.template"},
		},
		"names by a condition": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineNaming.Template = "{{ if .cluster.name }}a{{ end }}{{ .random }}"
			},
			[]string{"spec.machineNaming.template"},
		},
		"names by another template": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineNaming.Template = `{{ define "x" }}{{ end }}{{ .random }}`
			},
			[]string{"spec.machineNaming.template"},
		},
		"no template": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.MachineNaming.Template = "{{ .random" }, []string{"spec.machineNaming.template"},
		},
		"no names": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.MachineNaming.Template = "CP_{{ .random }}" }, []string{"spec.machineNaming.template"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateControlPlane(controlPlaneWith(test.change))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
}

func TestLongNamesAreCut(t *testing.T) {
	name, err := controlplanev1.MachineNaming{Template: "{{ .random }}-" + strings.Repeat("x", 70)}.Name("c", "cp", "abcde")
	if want := "abcde-" + strings.Repeat("x", 52) + "abcde"; err != nil || name != want {
		t.Errorf("%s (%d), %v; want %s", name, len(name), err, want)
	}
	name, err = controlplanev1.MachineNaming{}.Name("c", "cp", "abcde")
	if err != nil || name != "cp-abcde" {
		t.Errorf("%s, %v", name, err)
	}
}

// TestUpgrades is which versions a running cluster may go to, and how it is refused.
func TestUpgrades(t *testing.T) {
	inPlace := func(s *controlplanev1.KubexmControlPlaneSpec) {
		s.Rollout.Strategy.Type = controlplanev1.InPlaceStrategy
	}
	for name, test := range map[string]struct {
		from, to string
		// oldest and newest are those that Machines have, from if "".
		oldest, newest string
		// as is the control plane that it is, with a load balancer if nil.
		as    func(*controlplanev1.KubexmControlPlaneSpec)
		unset bool
		says  string
	}{
		"a patch":                               {from: "v1.36.2", to: "v1.36.3"},
		"the next minor version":                {from: "v1.35.4", to: "v1.36.3"},
		"a minor version skipped":               {from: "v1.35.4", to: "v1.37.0", says: "v1.35.4 runs, and no minor version may be skipped: upgrade to a v1.36 first"},
		"skipped, by a Machine":                 {from: "v1.36.3", to: "v1.37.0", oldest: "v1.35.4", says: "v1.35.4 runs, and no minor version may be skipped: upgrade to a v1.36 first"},
		"another patch, in mid-rollout":         {from: "v1.36.2", to: "v1.36.3", oldest: "v1.35.4"},
		"another major version":                 {from: "v1.36.3", to: "v2.0.0", says: "no major version may be changed"},
		"a minor version back":                  {from: "v1.36.3", to: "v1.35.4", says: "cannot be downgraded: v1.36.3 runs"},
		"a patch back":                          {from: "v1.36.3", to: "v1.36.2", says: "cannot be downgraded: v1.36.3 runs"},
		"taken back, before any Machine has it": {from: "v1.36.3", to: "v1.35.4", oldest: "v1.35.4", newest: "v1.35.4"},
		"taken back, when a Machine has it":     {from: "v1.36.3", to: "v1.35.4", oldest: "v1.35.4", says: "cannot be downgraded: v1.36.3 runs"},
		"back behind what is taken back":        {from: "v1.36.3", to: "v1.35.3", oldest: "v1.35.4", newest: "v1.35.4", says: "cannot be downgraded: v1.35.4 runs"},
		"from a release candidate":              {from: "v1.36.0-rc.1", to: "v1.36.0"},
		"back, before there is a cluster":       {from: "v1.37.0", to: "v1.35.4", unset: true},
		"no load balancer": {from: "v1.35.4", to: "v1.36.3",
			as: func(*controlplanev1.KubexmControlPlaneSpec) {}, says: "set rollout.strategy.type to InPlace"},
		"no load balancer, in place":           {from: "v1.35.4", to: "v1.36.3", as: inPlace},
		"no load balancer, before the cluster": {from: "v1.35.4", to: "v1.36.3", as: func(*controlplanev1.KubexmControlPlaneSpec) {}, unset: true},
	} {
		t.Run(name, func(t *testing.T) {
			as := test.as
			if as == nil {
				as = balanced
			}
			old, updated := controlPlaneWith(as), controlPlaneWith(as)
			old.Spec.Version, updated.Spec.Version = test.from, test.to
			old.Status.Initialization.ControlPlaneInitialized = ptr.To(!test.unset)
			old.Status.Versions = []clusterv1.StatusVersion{
				{Version: cmp.Or(test.oldest, test.from), Replicas: 1}, {Version: cmp.Or(test.newest, test.from), Replicas: 1},
			}
			errs := ValidateControlPlaneUpdate(old, updated)
			switch {
			case test.says == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs)
			case test.says != "" && (len(errs) != 1 || errs[0].Field != "spec.version" || !strings.Contains(errs[0].Detail, test.says)):
				t.Errorf("got %v, want that spec.version %s", errs, test.says)
			}
		})
	}
}

func TestAnotherTemplate(t *testing.T) {
	change := func(as func(*controlplanev1.KubexmControlPlaneSpec)) []string {
		old, updated := controlPlaneWith(as), controlPlaneWith(as)
		old.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		updated.Spec.MachineTemplate.Spec.InfrastructureRef.Name = "other"
		return fields(ValidateControlPlaneUpdate(old, updated))
	}
	if got := change(balanced); len(got) > 0 {
		t.Errorf("refused %v", got)
	}
	if got, want := change(nil), []string{"spec.machineTemplate.spec.infrastructureRef"}; !slices.Equal(got, want) {
		t.Errorf("refused %v, and not %v", got, want)
	}
}
