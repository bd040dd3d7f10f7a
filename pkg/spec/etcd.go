// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EtcdType is who runs etcd.
//
// +kubebuilder:validation:Enum=Binary;Kubeadm;External
type EtcdType string

const (
	// EtcdKubexm runs etcd as a systemd unit, on each control plane host or on hosts of its own.
	EtcdKubexm EtcdType = "Binary"
	// EtcdKubeadm runs etcd as a static pod on each control plane host.
	EtcdKubeadm EtcdType = "Kubeadm"
	// EtcdExternal uses an etcd that is there already.
	EtcdExternal EtcdType = "External"
)

// EtcdMetrics is how much etcd's metrics tell.
//
// +kubebuilder:validation:Enum=Basic;Extensive
type EtcdMetrics string

const (
	// EtcdMetricsBasic leaves histograms of requests out.
	EtcdMetricsBasic EtcdMetrics = "Basic"
	// EtcdMetricsExtensive has them too.
	EtcdMetricsExtensive EtcdMetrics = "Extensive"
)

// EtcdLogLevel is from which severity on etcd logs.
//
// +kubebuilder:validation:Enum=debug;info;warn;error;panic;fatal
type EtcdLogLevel string

// Etcd is how etcd is installed and set. All but type, hosts and external is for an etcd that is run here.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.external) == (has(self.type) && self.type == 'External')",fieldPath=".external",message="the type External needs external, and no other type takes it"
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || !has(self.type) || self.type == 'Binary'",fieldPath=".hosts",message="only etcd of the type Binary has hosts of its own"
type Etcd struct {
	// type is who runs etcd. If unset, Binary, whoever installs Kubernetes. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	Type EtcdType `json:"type,omitempty"`

	// hosts are hosts of the inventory that run etcd and nothing else; type must be Binary. If unset, etcd runs on the
	// control plane's hosts. Etcd must not move from the one to the other later.
	// +optional
	Hosts Hosts `json:"hosts,omitempty,omitzero"`

	// external is the etcd that is there already; type must be External.
	// +optional
	External ExternalEtcd `json:"external,omitempty,omitzero"`

	// dataDir is the absolute path of etcd's data on its hosts. If unset, /var/lib/etcd. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	DataDir string `json:"dataDir,omitempty"`

	// heartbeatIntervalMilliseconds is how often the leader tells the others that it is there. If unset, etcd's own 100.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	HeartbeatIntervalMilliseconds int32 `json:"heartbeatIntervalMilliseconds,omitempty"`

	// electionTimeoutMilliseconds is how long the others wait for that before they elect another leader: at least five times
	// the heartbeat interval. If unset, etcd's own 1000.
	// +optional
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=50000
	ElectionTimeoutMilliseconds int32 `json:"electionTimeoutMilliseconds,omitempty"`

	// snapshotCount is after how many transactions etcd writes a snapshot. If unset, etcd's own 10000.
	// +optional
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=10000000
	SnapshotCount int64 `json:"snapshotCount,omitempty"`

	// autoCompactionRetentionHours is how many hours of history etcd keeps. If unset, what kube-apiserver keeps (5 minutes).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8760
	AutoCompactionRetentionHours int32 `json:"autoCompactionRetentionHours,omitempty"`

	// metrics is how much etcd's metrics tell. If unset, Basic.
	// +optional
	Metrics EtcdMetrics `json:"metrics,omitempty"`

	// quotaBackendBytes is how large etcd's database may become before etcd refuses writes. If unset, etcd's own 2 GiB.
	// +optional
	// +kubebuilder:validation:Minimum=16777216
	// +kubebuilder:validation:Maximum=107374182400
	QuotaBackendBytes int64 `json:"quotaBackendBytes,omitempty"`

	// maxRequestBytes is how large one request may be. If unset, etcd's own 1.5 MiB.
	// +optional
	// +kubebuilder:validation:Minimum=65536
	// +kubebuilder:validation:Maximum=104857600
	MaxRequestBytes int64 `json:"maxRequestBytes,omitempty"`

	// maxSnapshots is how many snapshot files are kept. If unset, etcd's own 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxSnapshots int32 `json:"maxSnapshots,omitempty"`

	// maxWALs is how many write-ahead log files are kept. If unset, etcd's own 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxWALs int32 `json:"maxWALs,omitempty"`

	// logLevel is from which severity on etcd logs. If unset, info.
	// +optional
	LogLevel EtcdLogLevel `json:"logLevel,omitempty"`

	// goneMembers are members of etcd that no host of the cluster has, by their IDs (in hexadecimal digits, as etcdctl prints them) or
	// their names, whose hosts are known to be gone: they are removed. Those that a host has stay, whatever is said here. Take a name off
	// when its member is gone: another one may come to have it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z][0-9A-Za-z._-]*$`
	GoneMembers []string `json:"goneMembers,omitempty"`

	// backup has the hosts of etcd's members save backups by themselves, by a timer of systemd, one host after the other. If unset, they
	// save none.
	// +optional
	Backup EtcdBackup `json:"backup,omitempty,omitzero"`

	// extraArgs are further command line flags of etcd. wal-dir is the directory of its log, in one that is etcd's alone, and cannot be
	// changed later.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// ExternalEtcd is an etcd that is there already.
type ExternalEtcd struct {
	// endpoints are the URLs at which its members are reached by clients, such as https://192.168.6.6:2379.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	Endpoints []string `json:"endpoints,omitempty"`

	// secretRef is a Secret in the Cluster's namespace with ca.crt, tls.crt and tls.key, by which etcd is trusted and
	// kube-apiserver is known to it. It may be unset only where all endpoints are http.
	// +optional
	SecretRef SecretReference `json:"secretRef,omitempty,omitzero"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// IsExternal reports whether others run etcd.
func (e *Etcd) IsExternal() bool { return etcds[e.Type].users }

// IsStacked reports whether etcd runs on the control plane's hosts.
func (e *Etcd) IsStacked() bool { return !e.IsExternal() && e.Hosts.IsZero() }

// IsSecure reports whether an external etcd is reached by TLS.
func (e *ExternalEtcd) IsSecure() bool {
	return slices.ContainsFunc(e.Endpoints, func(text string) bool {
		parsed, err := url.Parse(text)
		return err == nil && parsed.Scheme == "https"
	})
}

// Flags are the settings that were made, as etcd's command line has them, in a fixed order; extraArgs, where both name one,
// count.
func (e *Etcd) Flags() []Arg {
	var flags []Arg
	for _, f := range []Arg{
		{Name: "heartbeat-interval", Value: number(int64(e.HeartbeatIntervalMilliseconds))},
		{Name: "election-timeout", Value: number(int64(e.ElectionTimeoutMilliseconds))},
		{Name: "snapshot-count", Value: number(e.SnapshotCount)},
		{Name: "auto-compaction-mode", Value: onlyIf(e.AutoCompactionRetentionHours != 0, "periodic")},
		{Name: "auto-compaction-retention", Value: onlyIf(e.AutoCompactionRetentionHours != 0, fmt.Sprintf("%dh", e.AutoCompactionRetentionHours))},
		{Name: "metrics", Value: strings.ToLower(string(e.Metrics))},
		{Name: "quota-backend-bytes", Value: number(e.QuotaBackendBytes)},
		{Name: "max-request-bytes", Value: number(e.MaxRequestBytes)},
		{Name: "max-snapshots", Value: number(int64(e.MaxSnapshots))},
		{Name: "max-wals", Value: number(int64(e.MaxWALs))},
		{Name: "log-level", Value: string(e.LogLevel)},
	} {
		if f.Value != "" && !slices.ContainsFunc(e.ExtraArgs, func(a Arg) bool { return a.Name == f.Name }) {
			flags = append(flags, f)
		}
	}
	return append(flags, e.ExtraArgs...)
}

// number is n in decimal, and nothing for zero, which is left out.
func number(n int64) string { return onlyIf(n != 0, strconv.FormatInt(n, 10)) }

func onlyIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func (e *Etcd) setDefaults() {
	defaultTo(&e.Type, defaultEtcd)
	etcds.setDefaults(e.Type, e)
}

// setOwnDefaults are those of an etcd that is run here.
func (e *Etcd) setOwnDefaults() { defaultTo(&e.DataDir, "/var/lib/etcd") }

func (e *Etcd) validate(path *field.Path) field.ErrorList {
	return append(e.Hosts.validate(path.Child("hosts")), etcds.validate(e.Type, e, path)...)
}

// validateOwn checks the settings of an etcd that is run here.
func (e *Etcd) validateOwn(path *field.Path) field.ErrorList {
	errs := validateDataDir(path.Child("dataDir"), e.DataDir)
	errs = append(errs, e.validateTuning(path)...)
	errs = append(errs, e.validateGone(path.Child("goneMembers"))...)
	errs = append(errs, e.Backup.validate(path.Child("backup"), e.DataDir)...)
	errs = append(errs, e.validateWAL(path.Child("extraArgs"))...)
	return append(errs, validateArgs(path.Child("extraArgs"), e.ExtraArgs, etcdFlags)...)
}

func (e *Etcd) validateExternal(path *field.Path) field.ErrorList {
	return append(e.External.validate(path.Child("external")), e.validateOnlyExternal(path)...)
}

// withoutHosts refuses hosts of its own.
func (e *Etcd) withoutHosts(path *field.Path) field.ErrorList {
	if e.Hosts.IsZero() {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("hosts"), fmt.Sprintf(
		"etcd of the type %s has no hosts of its own: remove them, or set %s to Binary", e.Type, path.Child("type")))}
}

// withoutExternal refuses an etcd that is there already.
func (e *Etcd) withoutExternal(path *field.Path) field.ErrorList {
	if len(e.External.Endpoints) == 0 && e.External.SecretRef.Name == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("external"), fmt.Sprintf(
		"the type is %s: remove this section, or set %s to External", e.Type, path.Child("type")))}
}

// validateOnlyExternal refuses settings of an etcd that others run.
func (e *Etcd) validateOnlyExternal(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	own := *e
	own.Type, own.Hosts, own.External = "", Hosts{}, ExternalEtcd{}
	for _, set := range []struct {
		name string
		is   bool
	}{
		{"dataDir", own.DataDir != ""}, {"heartbeatIntervalMilliseconds", own.HeartbeatIntervalMilliseconds != 0},
		{"electionTimeoutMilliseconds", own.ElectionTimeoutMilliseconds != 0}, {"snapshotCount", own.SnapshotCount != 0},
		{"autoCompactionRetentionHours", own.AutoCompactionRetentionHours != 0}, {"metrics", own.Metrics != ""},
		{"quotaBackendBytes", own.QuotaBackendBytes != 0}, {"maxRequestBytes", own.MaxRequestBytes != 0},
		{"maxSnapshots", own.MaxSnapshots != 0}, {"maxWALs", own.MaxWALs != 0}, {"logLevel", own.LogLevel != ""},
		{"goneMembers", len(own.GoneMembers) > 0}, {"backup", own.Backup != (EtcdBackup{})}, {"extraArgs", len(own.ExtraArgs) > 0},
	} {
		if set.is {
			errs = append(errs, field.Forbidden(path.Child(set.name), "etcd is external, and its settings are those who run it: remove it"))
		}
	}
	return errs
}

// memberPattern is what an ID or a name of a member looks like that can be removed: it is a word of a command.
var memberPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)

func (e *Etcd) validateGone(path *field.Path) field.ErrorList {
	errs := unique(path, e.GoneMembers, itself)
	for i, member := range e.GoneMembers {
		if !memberPattern.MatchString(member) {
			errs = append(errs, field.Invalid(path.Index(i), member, "give the ID of a member, as etcdctl member list prints it, or its name"))
		}
	}
	return errs
}

func (e *Etcd) validateTuning(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	heartbeat, election := cmp.Or(e.HeartbeatIntervalMilliseconds, 100), cmp.Or(e.ElectionTimeoutMilliseconds, 1000)
	if election < 5*heartbeat {
		errs = append(errs, field.Invalid(path.Child("electionTimeoutMilliseconds"), election, fmt.Sprintf(
			"etcd wants at least five times the heartbeat interval of %d ms: use %d or more", heartbeat, 5*heartbeat)))
	}
	return errs
}

func (e *ExternalEtcd) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("endpoints")
	if len(e.Endpoints) == 0 {
		errs = append(errs, field.Required(at, "give the URLs of etcd's members, such as https://192.168.6.6:2379"))
	}
	secure := 0
	for i, text := range e.Endpoints {
		parsed, err := url.Parse(text)
		switch {
		case err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || !isHostPort(parsed.Host) || parsed.Port() == "" ||
			parsed.Path != "" || parsed.RawQuery != "" || parsed.User != nil:
			errs = append(errs, field.Invalid(at.Index(i), text, "use a URL with a port and nothing behind it, such as https://192.168.6.6:2379"))
		case parsed.Scheme == "https":
			secure++
		}
	}
	errs = append(errs, unique(at, e.Endpoints, itself)...)
	if secure > 0 && secure < len(e.Endpoints) {
		errs = append(errs, field.Invalid(at, e.Endpoints, "some are https and some http: use https for all"))
	}
	if secure > 0 && e.SecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("secretRef", "name"), "name the Secret with ca.crt, tls.crt and tls.key by which etcd is reached"))
	}
	if e.SecretRef.Name != "" {
		errs = append(errs, validateSecretName(path.Child("secretRef", "name"), e.SecretRef.Name)...)
	}
	if secure == 0 && e.SecretRef.Name != "" {
		errs = append(errs, field.Forbidden(path.Child("secretRef"), "without https there is nothing to trust and to show: remove it, or use https endpoints"))
	}
	return errs
}
