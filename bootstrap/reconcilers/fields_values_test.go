// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// elsewhere are the fields that say nothing of what a host must be: who reads them, as a file and what is written there. A field
// stands for all that is in it.
var elsewhere = func() map[string]string {
	all := map[string]string{
		"KubexmControlPlane.spec.replicas":                                                     "controlplane/snapshot/snapshot.go: Spec.Replicas",
		"KubexmControlPlane.spec.rollout":                                                      "controlplane/snapshot/rollout.go: Spec.Rollout",
		"KubexmControlPlane.spec.remediation":                                                  "controlplane/snapshot/remediate.go: Spec.Remediation",
		"KubexmControlPlane.spec.machineNaming":                                                "controlplane/reconcilers/scale.go: MachineNaming",
		"KubexmControlPlane.spec.machineTemplate.metadata":                                     "controlplane/desired/desired.go: MachineTemplate.ObjectMeta.Labels",
		"KubexmControlPlane.spec.machineTemplate.spec.infrastructureRef":                       "controlplane/reconcilers/scale.go: InfrastructureRef",
		"KubexmControlPlane.spec.machineTemplate.spec.readinessGates":                          "controlplane/desired/desired.go: MachineTemplate.Spec.ReadinessGates",
		"KubexmControlPlane.spec.machineTemplate.spec.taints":                                  "controlplane/desired/desired.go: t.Taints",
		"KubexmControlPlane.spec.machineTemplate.spec.deletion.nodeVolumeDetachTimeoutSeconds": "controlplane/desired/desired.go: NodeVolumeDetachTimeoutSeconds",
		"KubexmControlPlane.spec.machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds":     "controlplane/desired/desired.go: NodeDeletionTimeoutSeconds",
		"KubexmControlPlane.spec.node.format":                                                  "controlplane/desired/desired.go: Node.Format",
		"KubexmControlPlane.spec.node.access":                                                  "controlplane/desired/desired.go: own.Access",
		"KubexmConfig.spec.accessPolicy":                                                       "bootstrap/reconcilers/close_access.go: s.config.Spec.AccessPolicy",
		"KubexmConfig.spec.access":                                                             "bootstrap/infra/generic.go: s.Config.Spec.Access",
		"KubexmClusterConfig.spec.controlPlaneRebootTimeoutSeconds":                            "bootstrap/reconcilers/reboot.go: ControlPlaneRebootTimeoutSeconds",
		"KubexmClusterConfig.spec.apiServerVersion":                                            "bootstrap/target/shared.go: APIServerVersion",
		"KubexmClusterConfig.spec.authorities":                                                 "bootstrap/reconcilers/authorities.go: FingerprintOf",
		"KubexmClusterConfig.spec.members[].configName":                                        "bootstrap/api/v1beta1/members.go: m.ConfigName",
		"KubexmHost.spec.failureDomain":                                                        "exp/infrastructure/reconcilers/claim.go: Spec.FailureDomain",
		"KubexmHost.spec.quarantine":                                                           "exp/infrastructure/reconcilers/availability.go: IsQuarantined",
		"KubexmHost.spec.bmc":                                                                  "bootstrap/reconcilers/bmc.go: s.host.BMC",
		"KubexmHost.spec.address":                                                              "bootstrap/infra/kubexm.go: Address: h.Spec.Address",
		"KubexmHost.spec.access":                                                               "bootstrap/infra/kubexm.go: h.Spec.Access",
		"KubexmHost.spec.maintenance":                                                          "bootstrap/reconcilers/maintenance.go: s.host.Maintenance",
		"KubexmHost.spec.claimRef.uid":                                                         "exp/infrastructure/api/v1alpha1/kubexmhost.go: ClaimRef.UID",
		"KubexmHost.spec.arch":                                                                 "pkg/preflight/os.go: r.t.Host.Arch",
		"KubexmMachine.spec.providerID":                                                        "exp/infrastructure/reconcilers/kubexmmachine_controller.go: Spec.ProviderID",
		"KubexmMachine.spec.hostName":                                                          "exp/infrastructure/reconcilers/claim.go: HostName",
		"KubexmHost.spec.capacity":                                                             "exp/infrastructure/api/v1alpha1/kubexmhost.go: h.Spec.Capacity",
		"KubexmMachine.spec.requirements":                                                      "exp/infrastructure/reconcilers/claim.go: Spec.Requirements",
		"KubexmMachine.spec.preferences":                                                       "exp/infrastructure/reconcilers/fit.go: m.Preferences",
		"KubexmMachine.spec.hostSelector":                                                      "exp/infrastructure/reconcilers/fit.go: m.HostSelector",
		"KubexmCluster.spec.controlPlaneEndpoint":                                              "exp/infrastructure/reconcilers/kubexmcluster_controller.go: s.infra.Spec.ControlPlaneEndpoint",
		"KubexmCluster.spec.failureDomains":                                                    "exp/infrastructure/reconcilers/kubexmcluster_controller.go: FailureDomains",
		"KubexmRemediation.spec.convergeTimeoutSeconds":                                        "bootstrap/reconcilers/remediation.go: spec.ConvergeTimeout()",
		"KubexmRemediation.spec.rebootTimeoutSeconds":                                          "bootstrap/reconcilers/remediation.go: spec.RebootTimeout()",
		"KubexmRemediation.spec.minHealthyPeriodSeconds":                                       "bootstrap/reconcilers/remediation.go: Spec.MinHealthyPeriod()",
		// A MachineHealthCheck copies it.
		"KubexmRemediationTemplate.spec": "bootstrap/webhooks/kubexmremediation.go: Changing this template replaces nothing",
	}
	for _, at := range []string{
		"KubexmControlPlane.spec.cluster", "KubexmControlPlane.spec.node", "KubexmClusterConfig.spec.cluster", "KubexmConfig.spec",
	} {
		all[at+".disruption"] = "bootstrap/reconcilers/disruption.go: spec.DisruptionOf"
		all[at+".driftPolicy"] = "bootstrap/reconcilers/policy.go: spec.DriftPolicyOf"
		all[at+".onFailure"] = "bootstrap/reconcilers/policy.go: spec.FailurePolicyOf"
		all[at+".reset"] = "bootstrap/reconcilers/policy.go: spec.ResetOf"
		all[at+".system.ignorePreflightErrors"] = "pkg/preflight/checks.go: IgnorePreflightErrors"
	}
	for _, at := range []string{"KubexmControlPlane.spec.cluster", "KubexmClusterConfig.spec.cluster"} {
		all[at+".artifacts"] = "bootstrap/setup/bundles.go: Bundle"
		// Of a host that is in one of those before it, it is no other address.
		all[at+".network.hostCIDRs"] = "bootstrap/target/shared.go: Network.Usable"
		all[at+".etcd.hosts"] = "controlplane/reconcilers/inventory.go: Etcd.Hosts"
		all[at+".loadBalancer.keepalived.hosts"] = "controlplane/reconcilers/inventory.go: LoadBalancer.OwnHosts"
	}
	return all
}()

// sometimes are fields that plans of some clusters depend on, and of others do not: what decides that, as a file and what is written
// there.
var sometimes = map[string]string{
	"KubexmClusterConfig.spec.version": "bootstrap/target/target.go: shared.config.Version",
	"KubexmClusterConfig.spec.members": "bootstrap/target/shared.go: concerns",
}

// letGo are fields whose change releases something on hosts: who takes it back, or why it may stay until the host is reset, as a
// file and what is written there.
var letGo = func() map[string]string {
	all := map[string]string{}
	for _, at := range []string{"KubexmControlPlane.spec.cluster", "KubexmClusterConfig.spec.cluster"} {
		all[at+".addons"] = "pkg/component/addon.go: step.PruneAddons"
		all[at+".containerRuntime.registries"] = "pkg/component/containerd/off-list.sh: rm -f"
		// A file has another name with other content, and nobody reads the former one.
		all[at+".kubernetes.apiServer.audit"] = "pkg/step/apiserver/apiserver.go: A part of its content's digest is in its name"
		all[at+".kubernetes.podSecurity"] = "pkg/step/apiserver/apiserver.go: A part of its content's digest is in its name"
		// What a mode needs of the kernel and of packages is of no harm to another.
		all[at+".kubernetes.proxy.mode"] = "pkg/component/kubeproxy/proxy.go: ip_vs"
	}
	return all
}()

// neverSet are fields that are refused whatever they say, or have one value so far.
var neverSet = func() map[string]string {
	all := map[string]string{
		"KubexmConfigTemplate.spec.template.spec.hostRef":       "bootstrap/api/v1beta1/validate.go: s.HostRef",
		"KubexmConfigTemplate.spec.template.spec.bootstrapMode": "bootstrap/api/v1beta1/validate.go: s.BootstrapMode",
		"KubexmMachineTemplate.spec.template.spec.providerID":   "exp/infrastructure/webhooks/kubexmmachine.go: Spec.ProviderID",
		"KubexmHost.spec.access.connection":                     "pkg/spec/access.go: a.Connection == ConnectionCallHome",
	}
	for _, at := range []string{
		"KubexmControlPlane.spec.cluster", "KubexmClusterConfig.spec.cluster", "KubexmControlPlaneTemplate.spec.template.spec.cluster",
	} {
		all[at+".controlPlaneEndpoint.port"] = "controlplane/webhooks/kubexmcontrolplane.go: the port is %s: remove it"
		if strings.HasPrefix(at, "KubexmClusterConfig") {
			all[at+".controlPlaneEndpoint.port"] = "bootstrap/webhooks/kubexmclusterconfig.go: the port is %s: remove it"
		}
		all[at+".network.calico.ipipMode"] = "pkg/spec/calico.go: EncapsulationAlways:      noBGP"
	}
	for _, at := range []string{
		"KubexmControlPlane.spec.node", "KubexmControlPlaneTemplate.spec.template.spec.node", "KubexmConfig.spec",
		"KubexmConfigTemplate.spec.template.spec",
	} {
		all[at+".access.connection"] = "bootstrap/webhooks/kubexmconfig.go: updated.Spec.Access.Connection"
		all[at+".access.hostKeys.authorities"] = "bootstrap/api/v1beta1/validate.go: s.Access.HostKeys.Authorities"
		if strings.HasSuffix(at, ".node") {
			all[at+".hostRef"] = "bootstrap/api/v1beta1/validate.go: s.HostRef"
			all[at+".bootstrapMode"] = "bootstrap/api/v1beta1/validate.go: s.BootstrapMode"
			all[at+".accessPolicy"] = "controlplane/webhooks/kubexmcontrolplane.go: node.AccessPolicy"
		}
		all[at+".nodeTaints[].timeAdded"] = "pkg/spec/node.go: at.Child(\"timeAdded\")"
	}
	return all
}()

const (
	someKey  = "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"
	otherKey = "SHA256:AAAAztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"

	someAuthority  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	otherAuthority = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4g"
)

// known are valid values of fields with paths that match.
type known struct {
	path   *regexp.Regexp
	values []any
}

func of(path string, values ...any) known { return known{regexp.MustCompile(path + "$"), values} }

// values are those of fields that take not any number or text. Of each, the first counts that the field does not have.
var values = []known{
	of(`KubexmOperation\.spec\.type`, bootstrapv1.RepairType, bootstrapv1.RebootType),
	of(`KubexmOperation\.spec\.components\[\]`, spec.ComponentEtcd, spec.ComponentKubelet),
	of(`KubexmOperation\.spec\.certificates\[\]`, "etcd-admin", "kubelet"),
	of(`KubexmOperation\.spec\.target\.kind`, bootstrapv1.ClusterTarget, bootstrapv1.MachineDeploymentTarget),
	of(`snapshot\.host\.path`, "/data/etcd-prod-20261123T030000Z-cp1.db"), of(`bucket\.location`, "s3://backups/dev/x.db"),
	of(`bucket\.endpoint`, "https://s3.other.example:9000"),
	of(`spec\.replicas`, 3, 5),
	of(`spec\.version`, "v1.36.4"), of(`apiServerVersion`, "v1.36.2"),
	of(`kubernetes\.type`, spec.KubernetesKubeadm, spec.KubernetesKubexm),
	of(`certSANs\[\]`, "api.other.example"),
	of(`audit\.level`, spec.AuditRequest, spec.AuditMetadata),
	of(`audit\.policy`, somePolicy+"- level: Request\n"),
	of(`proxy\.mode`, spec.ProxyIPVS, spec.ProxyNFTables),
	of(`proxy\.masquerade`, spec.MasqueradeOffCluster, spec.MasqueradeAll),
	of(`excludeCIDRs\[\]`, "172.18.0.0/24"),
	of(`podSecurity\.(enforce|audit|warn)`, spec.PodSecurityRestricted, spec.PodSecurityBaseline),
	of(`encryptionAtRest\.provider`, spec.EncryptionSecretbox, spec.EncryptionAESCBC), of(`encryptionAtRest\.resources\[\]`, "serviceaccounts"),
	of(`featureGates\[\]\.state`, spec.FeatureEnabled, spec.FeatureDisabled),
	of(`etcd\.type`, spec.EtcdKubeadm, spec.EtcdKubexm),
	of(`etcd\.metrics`, spec.EtcdMetricsBasic, spec.EtcdMetricsExtensive),
	of(`etcd\.logLevel`, "warn", "error"), of(`backup\.schedule`, "0 4 * * *"),
	of(`external\.endpoints\[\]`, "https://192.168.1.3:2379"),
	of(`insecure\[\]`, "other.example:5000"), of(`mirrors\[\]\.endpoints\[\]`, "https://mirror2.example"),
	of(`mirrors\[\]\.registry`, "quay.io"),
	of(`loadBalancer\.type`, spec.LoadBalancerExternal, spec.LoadBalancerNodeLocal), of(`\.proxy`, spec.LoadBalancerHAProxy, spec.LoadBalancerNginx),
	of(`controlPlaneEndpoint\.address`, "192.168.0.101"), of(`controlPlaneEndpoint\.host`, "192.168.0.101"),
	of(`domainResolution`, spec.DomainHostsFile, spec.DomainExternalDNS),
	of(`podCIDRs\[\]`, "10.40.0.0/16"), of(`serviceCIDRs\[\]`, "10.50.0.0/16"), of(`hostCIDRs\[\]`, "10.60.0.0/16"),
	of(`containerRuntime\.type`, spec.ContainerRuntimeContainerd, spec.ContainerRuntimeCRIO),
	of(`network\.plugin`, spec.NetworkCalico, spec.NetworkFlannel), of(`calico\.vxlanMode`, spec.EncapsulationAlways, spec.EncapsulationCrossSubnet),
	of(`flannel\.backend`, spec.FlannelVXLAN, spec.FlannelHostGW),
	of(`(zones|etcHosts)\[\]\.(address)`, "192.168.0.99"), of(`nameservers\[\]`, "192.168.0.98"), of(`upstreamServers\[\]`, "192.168.0.97"),
	of(`zones\[\]`, "other.corp.example"),
	of(`rewriteBlock`, "rewrite name c.example d.example"), of(`additionalConfigs`, "errors"),
	of(`(debs|rpms)\[\]`, "jq"), of(`swap`, spec.PolicyOff, spec.PolicyKeep), of(`firewall`, spec.FirewallOff, spec.FirewallKeep),
	of(`ignorePreflightErrors\[\]`, spec.CheckResolv),
	of(`renewal`, spec.RenewalAutomatic, spec.RenewalManual), of(`caAlgorithm`, spec.KeyRSA4096),
	of(`sha256`, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
	of(`addons\[\]\.name`, "other"), of(`addons\[\]\.values`, "replicas: 3\n"), of(`addons\[\]\.manifest`, someAddon("other")),
	of(`(hooks|limits)\[\]\.task`, "user", "system"), of(`hooks\[\]\.when`, spec.HookBefore, spec.HookAfter),
	of(`limits\[\]\.step`, "system/hosts", "system/hostname"),
	of(`approval`, spec.ApprovalNone, spec.ApprovalRequired),
	of(`maintenanceWindows\[\]\.start`, "0 23 * * SUN"), of(`timeZone`, "Europe/Paris"),
	of(`driftPolicy`, spec.DriftRepair, spec.DriftReport), of(`onFailure`, spec.FailureUndoTask, spec.FailureUndoRun),
	of(`reset\.policy`, spec.ResetNever, spec.ResetAlways),
	of(`nodeTaints\[\]\.effect`, corev1.TaintEffectPreferNoSchedule),
	of(`files\[\]\.permissions`, "0600"), of(`files\[\]\.owner`, "daemon:daemon"), of(`files\[\]\.content`, "b3RoZXIK"),
	of(`files\[\]\.encoding`, spec.EncodingGzipBase64, spec.EncodingBase64), of(`files\[\]\.append`, spec.AppendDisabled, spec.AppendEnabled),
	of(`files\[\]\.contentFormat`, spec.ContentPlain, spec.ContentTemplate), of(`dns\.type`, spec.DNSNone, spec.DNSCoreDNS),
	of(`strategy\.type`, controlplanev1.RollingUpdateStrategy, controlplanev1.InPlaceStrategy),
	of(`maxSurge`, 0, 1), of(`rollout\.after`, metav1.NewTime(time.Unix(1<<31, 0))), of(`quarantine\.time`, metav1.Unix(2, 0)),
	of(`machineNaming\.template`, "x-{{ .random }}"),
	of(`[tT]aints\[\]\.propagation`, clusterv1.MachineTaintPropagationOnInitialization, clusterv1.MachineTaintPropagationAlways),
	of(`machineTemplate\.spec\.taints\[\]\.effect`, corev1.TaintEffectNoExecute),
	of(`readinessGates\[\]\.polarity`, clusterv1.NegativePolarityCondition, clusterv1.PositivePolarityCondition),
	of(`fingerprint`, digest([]byte("other"))), of(`authorities\[\]\.name`, "sa"),
	of(`members\[\]\.role`, spec.RoleEtcd, spec.RoleLoadBalancer), of(`members\[\]\.address`, "10.0.0.99"),
	of(`members\[\]\.phase`, bootstrapv1.MemberDraining),
	of(`(spec|node)\.format`, bootstrapv1.IgnitionFormat, bootstrapv1.CloudConfigFormat),
	of(`access\.connection`, spec.ConnectionCallHome, spec.ConnectionDial),
	of(`accessPolicy`, spec.AccessClosed, spec.AccessOpen),
	of(`bootstrapMode`, spec.BootstrapInit, spec.BootstrapJoin), of(`hostRef\.role`, spec.RoleEtcd, spec.RoleLoadBalancer),
	of(`authorities\[\]`, otherAuthority), of(`authorities`, []string{otherAuthority}), of(`validitySeconds`, 120),
	of(`pinned(\[\])?`, "SHA256:BBBBztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"),
	of(`(capacity|requirements)\.cpus`, 7), of(`(capacity|requirements)\.memory`, resource.MustParse("7Gi")),
	of(`preferences\[\]\.weight`, 7), of(`preferences\[\]\.selector`, metav1.LabelSelector{MatchLabels: map[string]string{"rack": "2"}}),
	of(`preferences`, []infrav1.HostPreference{{Weight: 9, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": "3"}}}}),
	of(`sha256Fingerprint`, strings.Repeat("0b", 32)), of(`bmc\.certificate\.caBundle`, signer()),
	of(`KubexmHost\.spec\.address`, "192.168.0.22"), of(`internalAddresses\[\]`, "fd00::22"), of(`arch`, spec.ArchARM64),
	of(`claimRef\.kind`, infrav1.ClaimedByConfig, infrav1.ClaimedByMachine),
	of(`providerID`, "kubexm://fleet/w2"), of(`host[sS]elector|hosts\.selector`, metav1.LabelSelector{MatchLabels: map[string]string{"rack": "2"}}),
	of(`certificatesExpiryDays`, 10),
}

func someCapacity() infrav1.HostCapacity {
	return infrav1.HostCapacity{CPUs: 2, Memory: resource.MustParse("2Gi")}
}

func somePreferences() []infrav1.HostPreference {
	return []infrav1.HostPreference{{Weight: 10, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}}}}
}

// someBMC sets all that may be said of a management controller, which is known by its certificate.
func someBMC() spec.BMC {
	return spec.BMC{
		Address: "https://10.1.0.21", SystemID: "1", SecretRef: spec.SecretReference{Name: "bmc"},
		Certificate: spec.BMCCertificate{SHA256Fingerprint: strings.Repeat("0a", 32)},
	}
}

// signedBMC is one that is known by who has signed that.
func signedBMC() spec.BMC {
	b := someBMC()
	b.Certificate = spec.BMCCertificate{CABundle: signer()}
	return b
}

// signer is the certificate of an authority, in PEM, another one each time.
func signer() string {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "bmc", Key: pki.ECDSAP256})
	if err != nil {
		panic(err)
	}
	return string(ca.Cert)
}

// someAccess sets all that may be said of how a host is reached.
func someAccess() spec.Access {
	a := spec.Access{
		User: "ops", Port: 2222, HostKeys: spec.HostKeys{Pinned: []string{someKey, otherKey}},
		Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}}, Connection: spec.ConnectionDial,
	}
	a.ProxyJump = spec.ProxyJump{Host: "bastion.example.org", Port: 2022, User: "jump", HostKeys: a.HostKeys, Credentials: a.Credentials}
	return a
}

// accessOf is that of a world: in one of them, users have certificates, and so have hosts, or jump hosts where bootstrap data brings the
// hosts' own keys.
func accessOf(world string, ofPool bool) spec.Access {
	a := someAccess()
	if world != "dual-stack" {
		return a
	}
	a.ProxyJump.Credentials = spec.Credentials{UserCA: spec.UserCA{
		SecretRef: spec.SecretReference{Name: "users"}, Principal: "kubexm", ValiditySeconds: 60,
	}}
	a.ProxyJump.HostKeys = spec.HostKeys{Authorities: []string{someAuthority}}
	a.Credentials = a.ProxyJump.Credentials
	if ofPool {
		a.HostKeys = a.ProxyJump.HostKeys
	}
	return a
}

// someAddon is a manifest.
func someAddon(word string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motd}\ndata: {word: " + word + "}\n"
}

const somePolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"

// lastFile is, of worlds, the last of a host's files, which is the one that is changed: one from a Secret, an encoded one, a template. In
// others it is one that is appended.
var lastFile = map[string]int{"kubexm": 0, "dual-stack": 2, "external": 3}

// richNode sets all that a user may say of a host.
func richNode(n *spec.Node, role spec.Role, world string) {
	*n = spec.Node{
		Kubelet:    spec.Kubelet{MaxPods: 60, PodPidsLimit: 3000, ExtraArgs: []spec.Arg{{Name: "v", Value: "4"}, {Name: "serialize-image-pulls", Value: "false"}}},
		NodeLabels: map[string]string{"disk": "ssd", "tier": "a"},
		NodeTaints: []corev1.Taint{
			{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}, {Key: "special", Value: "y", Effect: corev1.TaintEffectNoExecute},
		},
		System: ownSystem(),
		Files: []spec.File{
			{Path: "/etc/app/token", Owner: "app:app", Permissions: "0640",
				ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: "app", Key: "token"}}},
			{Path: "/etc/app/motd", Permissions: "0640", Owner: "app:app", Content: "hello\n"},
			// Of gzip: what it stands for is in the encoding GzipBase64, too.
			{Path: "/etc/app/blob", Encoding: spec.EncodingBase64, Content: "H4sIAAAAAAAAA8tIzcnJ5wIAIDA6NgYAAAA="},
			{Path: "/etc/app/host", ContentFormat: spec.ContentTemplate, Content: "{{ .name }} of {{ .cluster }}\n"},
			{Path: "/etc/app/list", Append: spec.AppendEnabled, Content: "one more\n"},
		},
		PreCommands: []string{"touch /a", "touch /b"}, PostCommands: []string{"touch /c", "touch /d"},
		Hooks: []spec.Hook{
			{Name: "one", Task: "system", When: spec.HookAfter, Commands: []string{"touch /e", "touch /f"}},
			{Name: "two", Task: "system", When: spec.HookAfter, Commands: []string{"touch /g", "touch /h"}},
		},
		Limits: []spec.Limit{
			{Step: "system/hosts", TimeoutSeconds: 100, Attempts: 5, Concurrency: 6},
			{Task: "system", TimeoutSeconds: 200, Attempts: 7, Concurrency: 8},
		},
		Disruption: richDisruption(), DriftPolicy: spec.DriftReport, OnFailure: spec.FailureUndoRun,
		Reset: spec.Reset{Policy: spec.ResetWhenReachable, TimeoutSeconds: ptr.To[int32](60)},
	}
	if last, cut := lastFile[world]; cut {
		n.Files = n.Files[:last+1]
	}
	if !role.IsNode() {
		n.Kubelet, n.NodeLabels, n.NodeTaints, n.System.Swap = spec.Kubelet{}, nil, nil, ""
	}
	if role == spec.RoleLoadBalancer {
		n.Files = n.Files[:1] // the last one is from a Secret
		n.Limits = n.Limits[:1]
	}
}

// ownSystem is what a host's own system says beside richSystem, and against it.
func ownSystem() spec.System {
	return spec.System{
		Packages: spec.Packages{Debs: []string{"lvm2", "curl=7.88.1"}, RPMs: []string{"lvm2", "tar=1.34-6.el9"}},
		Sysctls:  []spec.Sysctl{{Name: "net.core.rmem_max", Value: "4096"}, {Name: "vm.swappiness", Value: "1"}},
		Modules:  []string{"bonding", "dm_crypt"}, Swap: spec.PolicyOff, Firewall: spec.FirewallKeep,
		EtcHosts: []spec.HostEntry{
			{Address: "192.168.0.9", Hostnames: []string{"log.example", "log"}}, {Address: "192.168.0.10", Hostnames: []string{"ntp.example", "ntp"}},
		},
		IgnorePreflightErrors: []spec.PreflightCheck{spec.CheckHostname, spec.CheckTime},
	}
}

func richDisruption() spec.Disruption {
	return spec.Disruption{
		Approval: spec.ApprovalRequired, MaxUnavailable: 2,
		MaintenanceWindows: []spec.MaintenanceWindow{
			{Start: "0 21 * * SAT", DurationMinutes: 60, TimeZone: "Europe/Berlin"},
			{Start: "0 22 * * SAT", DurationMinutes: 60, TimeZone: "Europe/Berlin"},
		},
	}
}

func richSystem() spec.System {
	return spec.System{
		Packages: spec.Packages{Debs: []string{"nfs-common", "socat=1.7.4.4-2"}, RPMs: []string{"nfs-utils", "socat=1.7.4.1-5.el9"}},
		Sysctls:  []spec.Sysctl{{Name: "net.core.somaxconn", Value: "4096"}, {Name: "vm.max_map_count", Value: "262144"}},
		Modules:  []string{"nf_conntrack", "dummy"}, Swap: spec.PolicyKeep, Firewall: spec.FirewallOff,
		EtcHosts: []spec.HostEntry{
			{Address: "192.168.0.7", Hostnames: []string{"store.example", "store"}}, {Address: "192.168.0.8", Hostnames: []string{"mail.example", "mail"}},
		},
		IgnorePreflightErrors: []spec.PreflightCheck{spec.CheckHostname, spec.CheckTime},
	}
}

// richCluster sets all that a user may say of a cluster of every kind.
func richCluster() spec.Cluster {
	return spec.Cluster{
		Kubernetes: spec.Kubernetes{
			APIServer: spec.APIServer{
				CertSANs:  []string{"api.example", "*.api.example"},
				Audit:     spec.Audit{Level: spec.AuditRequest, MaxAgeDays: 7, MaxBackups: 5, MaxSizeMegabytes: 50},
				ExtraArgs: []spec.Arg{{Name: "max-requests-inflight", Value: "500"}, {Name: "v", Value: "3"}},
			},
			ControllerManager: spec.ControllerManager{ExtraArgs: []spec.Arg{{Name: "concurrent-gc-syncs", Value: "10"}, {Name: "v", Value: "3"}}},
			Scheduler:         spec.Scheduler{ExtraArgs: []spec.Arg{{Name: "kube-api-qps", Value: "60"}, {Name: "v", Value: "3"}}},
			Kubelet: spec.Kubelet{
				MaxPods: 50, PodPidsLimit: 2000, ExtraArgs: []spec.Arg{{Name: "image-gc-high-threshold", Value: "80"}, {Name: "v", Value: "3"}},
			},
			Proxy:            spec.Proxy{Mode: spec.ProxyNFTables, Masquerade: spec.MasqueradeAll},
			EncryptionAtRest: spec.EncryptionAtRest{Provider: spec.EncryptionSecretbox, Resources: []string{"secrets", "configmaps"}},
			PodSecurity: spec.PodSecurity{
				Enforce: spec.PodSecurityBaseline, Audit: spec.PodSecurityRestricted, Warn: spec.PodSecurityRestricted,
				ExemptNamespaces: []string{"monitoring", "logging"},
			},
			FeatureGates: []spec.FeatureGate{{Name: "InPlacePodVerticalScaling", State: spec.FeatureDisabled}, {Name: "NodeSwap", State: spec.FeatureEnabled}},
		},
		Etcd: spec.Etcd{
			DataDir: "/data/etcd", HeartbeatIntervalMilliseconds: 200, ElectionTimeoutMilliseconds: 2000, SnapshotCount: 20000,
			AutoCompactionRetentionHours: 2, Metrics: spec.EtcdMetricsExtensive, QuotaBackendBytes: 4 << 30, MaxRequestBytes: 2 << 20,
			MaxSnapshots: 6, MaxWALs: 7, LogLevel: "warn", GoneMembers: []string{"old1", "old2"},
			Backup:    spec.EtcdBackup{Schedule: "0 3 * * *", Directory: "/data/etcd-backups", Keep: 7},
			ExtraArgs: []spec.Arg{{Name: "max-txn-ops", Value: "256"}, {Name: "max-concurrent-streams", Value: "1000"}},
		},
		ContainerRuntime: spec.ContainerRuntime{
			DataDir: "/data/containerd",
			Registries: spec.Registries{
				Mirrors: []spec.Mirror{
					{Registry: "docker.io", Endpoints: []string{"https://mirror.example:5000"}},
					{Registry: "ghcr.io", Endpoints: []string{"https://mirror.example:5000", "https://mirror3.example"}},
				},
				Insecure: []string{"mirror.example:5000", "registry.example"},
			},
		},
		Network: spec.Network{
			PodCIDRs: []string{"10.20.0.0/16"}, ServiceCIDRs: []string{"10.30.0.0/16"}, HostCIDRs: []string{"10.0.0.0/16", "192.168.0.0/24"},
			Flannel: spec.Flannel{Backend: spec.FlannelHostGW, MTU: 1400},
		},
		DNS: spec.DNS{
			ClusterDomain: "prod.example",
			EtcHosts: []spec.HostEntry{
				{Address: "192.168.0.7", Hostnames: []string{"store.example"}},
				{Address: "192.168.0.8", Hostnames: []string{"mail.example", "mail"}},
			},
			CoreDNS: spec.CoreDNS{
				AdditionalConfigs: "log", RewriteBlock: "rewrite name a.example b.example", UpstreamServers: []string{"192.168.0.54", "192.168.0.55"},
				ExternalZones: []spec.ExternalZone{
					{Zones: []string{"lab.example:1053"}, Nameservers: []string{"192.168.0.56"}},
					{
						Zones: []string{"corp.example", "corp2.example"}, Nameservers: []string{"192.168.0.56", "192.168.0.57"}, CacheSeconds: 5,
						Rewrite: []string{"name a.corp.example b.corp.example", "name c.corp.example d.corp.example"},
					},
				},
			},
		},
		System:       richSystem(),
		Certificates: spec.Certificates{ValidityDays: 300, RenewBeforeDays: 60, CAAlgorithm: spec.KeyECDSAP256, CAValidityDays: 3000},
		Artifacts:    spec.Artifacts{Bundle: spec.Bundle{Path: "bundle", SHA256: "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}},
		Addons: []spec.Addon{
			{Name: spec.AddonMetricsServer, Values: "replicas: 2\n"}, {Name: "motd", Manifest: someAddon("one")},
		},
		Hooks: []spec.Hook{
			{Name: "three", Task: "system", When: spec.HookAfter, Commands: []string{"touch /i", "touch /j"}},
			{Name: "four", Task: "system", When: spec.HookAfter, Commands: []string{"touch /k", "touch /l"}},
		},
		Limits: []spec.Limit{
			{Task: "system", TimeoutSeconds: 300, Attempts: 2, Concurrency: 3},
			{Step: "system/hostname", TimeoutSeconds: 400, Attempts: 3, Concurrency: 4},
		},
		Disruption: richDisruption(), DriftPolicy: spec.DriftReport, OnFailure: spec.FailureUndoRun,
		Reset: spec.Reset{Policy: spec.ResetWhenReachable, TimeoutSeconds: ptr.To[int32](60)},
	}
}

// worlds are clusters of as many kinds as it takes to have each field.
func worlds(bundle *artifact.Bundle) []*world {
	const virtual = "192.168.0.100"
	var all []*world
	type change func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node)
	add := func(name string, endpoint clusterv1.APIEndpoint, change change) {
		object := &controlplanev1.KubexmControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "1"},
			Spec: controlplanev1.KubexmControlPlaneSpec{
				Replicas: ptr.To[int32](3), Version: "v1.36.3", Cluster: richCluster(),
				MachineTemplate: controlplanev1.MachineTemplate{
					ObjectMeta: clusterv1.ObjectMeta{
						Labels: map[string]string{"team": "a", "x": "y"}, Annotations: map[string]string{"note": "b", "x": "y"},
					},
					Spec: controlplanev1.MachineTemplateSpec{
						InfrastructureRef: clusterv1.ContractVersionedObjectReference{
							APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "prod",
						},
						ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Mine", Polarity: clusterv1.PositivePolarityCondition}},
						Deletion: controlplanev1.MachineDeletion{
							NodeDrainTimeoutSeconds: ptr.To[int32](60), NodeVolumeDetachTimeoutSeconds: ptr.To[int32](60),
							NodeDeletionTimeoutSeconds: ptr.To[int32](60),
						},
						Taints: []clusterv1.MachineTaint{{
							Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways,
						}},
					},
				},
				Rollout: controlplanev1.Rollout{
					After: metav1.Unix(1<<30, 0), Before: controlplanev1.RolloutBefore{CertificatesExpiryDays: 20},
					Strategy: controlplanev1.RolloutStrategy{
						Type: controlplanev1.InPlaceStrategy, RollingUpdate: controlplanev1.RollingUpdate{MaxSurge: ptr.To[int32](1)},
						InPlace: controlplanev1.InPlace{Canary: controlplanev1.Canary{Approval: spec.ApprovalRequired, SettleSeconds: 60}},
					},
				},
				Remediation: controlplanev1.Remediation{
					ConvergeTimeoutSeconds: ptr.To[int32](60), RebootTimeoutSeconds: ptr.To[int32](60), MaxRetry: ptr.To[int32](3),
					RetryPeriodSeconds: ptr.To[int32](60), MinHealthyPeriodSeconds: ptr.To[int32](60),
				},
				MachineNaming: controlplanev1.MachineNaming{Template: "cp-{{ .random }}"},
			},
		}
		richNode(&object.Spec.Node.Node, spec.RoleControlPlane, name)
		object.Spec.Node.Access, object.Spec.Node.Format = accessOf(name, false), bootstrapv1.IgnitionFormat
		object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		object.Spec.ControlPlaneEndpoint = endpoint
		change(object, &object.Spec.Cluster, &object.Spec.Node.Node)
		cluster := &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}, Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: endpoint},
		}
		all = append(all, &world{
			name: name, controlPlane: object, bundle: bundle, planned: map[string]footprint{}, cluster: cluster,
		})
	}
	add("kubeadm", clusterv1.APIEndpoint{Host: "192.168.0.11", Port: 8443}, func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node) {
		c.Etcd.Type = spec.EtcdKubeadm
		c.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Domain: "api.prod.example.org"}
		c.LoadBalancer.Type, c.LoadBalancer.NodeLocal.Proxy = spec.LoadBalancerNodeLocal, spec.LoadBalancerNginx
		c.Kubernetes.NodeCIDRMaskSize = 25
	})
	add("kubexm", clusterv1.APIEndpoint{Host: virtual, Port: 8443}, func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node) {
		c.Kubernetes.Type, c.Kubernetes.NodeCIDRMaskSize = spec.KubernetesKubexm, 25
		c.Kubernetes.Proxy = spec.Proxy{
			Mode: spec.ProxyIPVS, Masquerade: spec.MasqueradeAll, IPVS: spec.IPVS{ExcludeCIDRs: []string{"172.16.0.0/24", "172.17.0.0/24"}},
		}
		c.Etcd.Hosts = spec.Hosts{Names: []string{"e1", "e2", "e3"}}
		c.LoadBalancer = spec.LoadBalancer{Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{
			Proxy: spec.LoadBalancerNginx, Hosts: spec.Hosts{Names: []string{"lb1", "lb2"}}, Interface: "eth1", VirtualRouterID: 7,
		}}
		c.Certificates.Renewal, c.Certificates.RenewBeforeDays = spec.RenewalManual, 0
		c.Kubernetes.APIServer.Audit = spec.Audit{Policy: somePolicy, MaxAgeDays: 7, MaxBackups: 5, MaxSizeMegabytes: 50}
		o.Spec.Rollout.Strategy = controlplanev1.RolloutStrategy{Type: controlplanev1.InPlaceStrategy}
		n.Limits = n.Limits[:1]
	})
	add("dual-stack", clusterv1.APIEndpoint{Host: virtual, Port: 8443}, func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node) {
		c.Network.PodCIDRs, c.Network.ServiceCIDRs = []string{"10.20.0.0/16", "fd85:ee78:d8a6::/56"}, []string{"10.30.0.0/16", "fd85:ee78:d8a7::/112"}
		c.Network.HostCIDRs = []string{"10.0.0.0/16", "192.168.0.0/24", "fd00::/64"}
		c.Kubernetes.NodeCIDRMaskSizeIPv4, c.Kubernetes.NodeCIDRMaskSizeIPv6 = 25, 66
		c.LoadBalancer = spec.LoadBalancer{Type: spec.LoadBalancerKubeVIP, KubeVIP: spec.KubeVIP{Image: "registry.example/kube-vip:v1", Interface: "eth1"}}
		c.Limits = c.Limits[:1]
	})
	add("external", clusterv1.APIEndpoint{Host: "api.prod.example.org", Port: 8443}, func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node) {
		c.Kubernetes.Type, c.Kubernetes.NodeCIDRMaskSize = spec.KubernetesKubexm, 25
		c.Etcd = spec.Etcd{Type: spec.EtcdExternal, External: spec.ExternalEtcd{
			Endpoints: []string{"https://192.168.1.1:2379", "https://192.168.1.2:2379"}, SecretRef: spec.SecretReference{Name: "etcd-client"},
		}}
		c.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{DomainResolution: spec.DomainExternalDNS}
		c.LoadBalancer.Type = spec.LoadBalancerExternal
		slices.Reverse(c.Addons) // the last one of a list is changed
		c.Network.Plugin, c.Network.Flannel = spec.NetworkCalico, spec.Flannel{}
		c.Network.Calico = spec.Calico{VXLANMode: spec.EncapsulationCrossSubnet, VethMTU: 1400, BlockSize: 27}
	})
	add("named", clusterv1.APIEndpoint{Host: "api.prod.example.org", Port: 8443}, func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node) {
		c.Kubernetes.NodeCIDRMaskSize = 25
		c.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Address: virtual}
		c.LoadBalancer.Type = spec.LoadBalancerExternal
		c.DNS = spec.DNS{Type: spec.DNSNone, ClusterDomain: c.DNS.ClusterDomain}
	})
	selected := func(pool string) spec.Hosts {
		return spec.Hosts{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}}
	}
	add("selected", clusterv1.APIEndpoint{Host: virtual, Port: 8443}, func(o *controlplanev1.KubexmControlPlane, c *spec.Cluster, n *spec.Node) {
		c.Etcd.Hosts = selected("etcd")
		c.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Domain: "api.prod.example.org", DomainResolution: spec.DomainExternalDNS}
		c.LoadBalancer = spec.LoadBalancer{
			Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{Proxy: spec.LoadBalancerNginx, Hosts: selected("lb")},
		}
		c.Kubernetes.NodeCIDRMaskSize = 25
		c.ContainerRuntime.Type = spec.ContainerRuntimeCRIO
		c.Network.Plugin, c.Network.Flannel = spec.NetworkCalico, spec.Flannel{}
	})
	return all
}
