// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const inventoryFile = "inventory.json"

// Inventory is what commands that are given no config file know of a cluster. It holds no secrets.
type Inventory struct {
	Cluster           string `json:"cluster"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Upgrading is the version that an upgrade is on its way to, "" if none has begun that did not end.
	Upgrading string `json:"upgrading,omitempty"`
	// Server is the URL of the cluster's API server.
	Server string `json:"server"`
	// Bundle is the path of the bundle that the cluster is made from.
	Bundle string `json:"bundle"`
	Hosts  []Host `json:"hosts"`
	// EtcdSecret is the name of the Secret that EtcdFiles become. They are where the config file says.
	EtcdSecret string           `json:"etcdSecret,omitempty"`
	EtcdFiles  config.EtcdFiles `json:"etcdFiles,omitzero"`
	// Encryption is what the cluster's API servers encrypt, for as long as it exists.
	Encryption spec.EncryptionAtRest `json:"encryptionAtRest,omitzero"`
	// Declared is what the config file said when this was written. Running is what it said when hosts were last changed, nil where that is
	// not known: by it is refused what a cluster cannot follow.
	Declared *Declaration `json:"declared,omitempty"`
	Running  *Declaration `json:"running,omitempty"`
	// OnFailure is what becomes of what a plan has changed when a step fails, "" for Stop.
	OnFailure spec.FailurePolicy `json:"onFailure,omitempty"`
	// Ready is the digest of what was declared when the cluster last was up to date, and ReadyTime when that was.
	Ready     string    `json:"ready,omitempty"`
	ReadyTime time.Time `json:"readyTime,omitzero"`
	// Recovered is when all of this was read back from the hosts, or read at first by an adoption, zero if it was not, or if a management
	// plane has the cluster since. The one that had it is lost: none knows the hosts. Managed says that they are as a management
	// plane makes them.
	Recovered time.Time `json:"recovered,omitzero"`
	Managed   bool      `json:"managed,omitempty"`
}

// Declaration is what hosts are made from.
type Declaration struct {
	KubernetesVersion string       `json:"kubernetesVersion"`
	Spec              spec.Cluster `json:"spec"`
	// Plan is the digest of the plan that was made of it, "" for what a management plane makes so.
	Plan string `json:"plan,omitempty"`
	// Reached says that all hosts have become that.
	Reached bool `json:"reached,omitempty"`
}

// SetRunning says that hosts are changed to what is declared, by the plan with this digest ("" for a management plane), and whether all of
// them have become that. Of another plan than the last that was made it is not known what was declared: what is known stays.
func (i *Inventory) SetRunning(plan string, reached bool) {
	if i.Declared == nil || i.Declared.Plan != plan {
		return
	}
	running := *i.Declared
	running.Reached = reached || i.Running != nil && i.Running.Reached
	i.Running = &running
}

// IsRecovered reports whether no management plane knows the hosts, because the one that did is lost.
func (i *Inventory) IsRecovered() bool { return i != nil && !i.Recovered.IsZero() }

// Host is one host, and how it is reached.
type Host struct {
	Name           string    `json:"name"`
	Role           spec.Role `json:"role"`
	Address        string    `json:"address"`
	Port           int32     `json:"port"`
	User           string    `json:"user"`
	PrivateKeyPath string    `json:"privateKeyPath,omitempty"`
	// NeedsPassword says that the host is reached by a password, which is in the config file alone.
	NeedsPassword bool `json:"needsPassword,omitempty"`
	// HostKey is the key that the host must show: a fingerprint, or a whole key.
	HostKey string `json:"hostKey,omitempty"`
	// ProxyJump is the host through which it is reached, nil if that is directly.
	ProxyJump *ProxyJump `json:"proxyJump,omitempty"`
	// Adopted says that somebody else has made the host a part of the cluster: its reset removes what Kubernetes has put there, and brings
	// nothing of it back.
	Adopted bool `json:"adopted,omitempty"`
	// Applied says that a plan was applied to the host and that no management plane is known to have it: who deletes the cluster resets it
	// beside what the plane resets.
	Applied bool `json:"applied,omitempty"`
	// System is what was last seen of the host, nil if nothing was. Plans are made from it, so that a look at a host that is
	// up to date costs one exchange.
	System *host.System `json:"system,omitempty"`
}

// Host is the host with this name, nil if there is none.
func (i *Inventory) Host(name string) *Host {
	at := slices.IndexFunc(i.Hosts, func(h Host) bool { return h.Name == name })
	if at < 0 {
		return nil
	}
	return &i.Hosts[at]
}

// Applied are the names of the hosts that are Applied.
func (i *Inventory) Applied() []string {
	var names []string
	for _, h := range i.Hosts {
		if h.Applied {
			names = append(names, h.Name)
		}
	}
	return names
}

// SetApplied says of the hosts with these names, of those that there are, whether they are Applied.
func (i *Inventory) SetApplied(names []string, applied bool) {
	for n := range i.Hosts {
		if slices.Contains(names, i.Hosts[n].Name) {
			i.Hosts[n].Applied = applied
		}
	}
}

// ProxyJump is a jump host, and how it is logged in to, as of a Host.
type ProxyJump struct {
	Host           string `json:"host"`
	Port           int32  `json:"port"`
	User           string `json:"user"`
	PrivateKeyPath string `json:"privateKeyPath,omitempty"`
	NeedsPassword  bool   `json:"needsPassword,omitempty"`
	HostKey        string `json:"hostKey,omitempty"`
}

// Inventory reads the inventory, nil if there is none.
func (d Dir) Inventory() (*Inventory, error) {
	content, err := d.Read(inventoryFile)
	if err != nil || content == nil {
		return nil, err
	}
	i := &Inventory{}
	if err := json.Unmarshal(content, i); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Path(inventoryFile), err)
	}
	return i, nil
}

// WriteInventory replaces the inventory.
func (d Dir) WriteInventory(i *Inventory) error {
	content, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return d.Write(append(content, '\n'), inventoryFile)
}
