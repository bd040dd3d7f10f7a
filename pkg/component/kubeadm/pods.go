// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	// podsFile is what the static pods were made of, as the cluster was told.
	podsFile     = dir + "/kubeadm-control-plane.yaml"
	manifestsDir = dir + "/manifests"
	// copiesDir has a copy of each manifest as it was placed, by which one is known that somebody has spoiled or taken away, and what it
	// was made of.
	copiesDir = dir + "/kubexm-manifests"
	// changeDir exists while the control plane of a host that runs is brought to something else.
	changeDir = dir + "/kubexm-change"
	// patience is how long one component of the control plane may take to become Ready.
	patience = 4 * time.Minute
)

var (
	//go:embed place.sh
	place string
	//go:embed etcd-alone.sh
	etcdAlone string
	//go:embed etcd-spared.sh
	etcdSpared string
	//go:embed pod.sh
	pod string
	//go:embed made.sh
	madeScript string
)

// Kept are the files that kubeadm writes by itself, and would write anew for another version.
func Kept(controlPlane, ownEtcd bool) []string {
	if !controlPlane {
		return KubeletReads()
	}
	return append(KubeletReads(), keptOfPods(ownEtcd)...)
}

func keptOfPods(ownEtcd bool) []string {
	var kept []string
	for _, of := range []string{manifestsDir, copiesDir} {
		for _, pod := range components(ownEtcd) {
			kept = append(kept, path.Join(of, pod+".yaml"))
		}
	}
	return kept
}

// components are the static pods that kubeadm makes, in the order in which they are changed.
func components(ownEtcd bool) []string {
	users := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if ownEtcd {
		return append([]string{"etcd"}, users...)
	}
	return users
}

// StaticPods brings the control plane's static pods on this host to what c says: another version, or other settings, or what they
// were before somebody changed a manifest; and it renews certificates that end soon, of which c must not leave that to people. Etcd is
// changed first, then the API server, then those who use it, each when what comes before is Ready, and on one host of the cluster at a
// time. When one does not become Ready, all is rolled back.
func StaticPods(c Cluster, n kubelet.Node) []step.Step {
	ownEtcd := len(c.EtcdEndpoints) == 0
	renews := c.Spec.Certificates.RenewBefore() > 0
	var begin step.Savepoint
	for _, pod := range components(ownEtcd) {
		begin.Unless = append(begin.Unless, placed(c, n, pod))
	}
	begin.Unless = append(begin.Unless, rendered(servingNames, namesOf(c, n)))
	if renews {
		begin.Unless = append(begin.Unless, certificatesLast(c, n))
	}
	steps := []step.Step{beginChange(c, n, begin)}
	if renews {
		steps = append(steps, Certificates(c, n))
	}
	steps = append(steps, ServingCertificate(c, n))
	steps = append(steps, eachWhenReady(c, n, components(ownEtcd), func(name string) step.Step { return manifest(c, n, name) })...)
	return append(steps, endChange(), upload(c, n))
}

// eachWhenReady has the step of each pod, in this order; each comes when what comes before is Ready, and those who use the API server
// come together.
func eachWhenReady(c Cluster, n kubelet.Node, pods []string, of func(pod string) step.Step) []step.Step {
	var steps, await []step.Step
	for _, pod := range pods {
		if pod == "kube-apiserver" {
			steps, await = append(steps, await...), nil
		}
		steps, await = append(steps, of(pod)), append(await, podReady(c, n, pod))
		if pod == "kube-apiserver" {
			steps, await = append(steps, await...), nil
		}
	}
	return append(steps, await...)
}

// beginChange opens a savepoint before the static pods of a control plane that runs are changed.
func beginChange(c Cluster, n kubelet.Node, p step.Savepoint) step.Step {
	p.About, p.InUse, p.Dir, p.Turn = "the change of its control plane", nodeConf, changeDir, component.ControlPlaneTurn
	p.Keeps = append(keptOfPods(len(c.EtcdEndpoints) == 0), certificateFiles(c)...)
	p.Settled = step.Done{Check: askReady(c, n)}
	return step.New(step.Meta{
		Name: "kubeadm/begin-change", Description: "open a savepoint before the running control plane is changed",
		Disrupts: "restarts the control plane's components",
	}, p)
}

// endChange drops what was there before.
func endChange() step.Step {
	return step.New(step.Meta{Name: "kubeadm/end-change", Description: "commit the change when the control plane's components are Ready"},
		step.Commit{Dir: changeDir})
}

// stepOf is the part of a step's name that says which pod it is about.
func stepOf(pod string) string { return "kubeadm/" + strings.TrimPrefix(pod, "kube-") }

// manifest makes that of a pod what kubeadm makes of c, and says to the kubelet that it is another one when the component must read its
// certificates anew.
func manifest(c Cluster, n kubelet.Node, name string) step.Step {
	argv := placeArgv(name, "control-plane "+strings.TrimPrefix(name, "kube-"), podsConfig(c, n))
	if name == "etcd" {
		argv = etcdArgv(c, n, placeEnvironment(name, "etcd local", podsConfig(c, n)))
	}
	about := step.Meta{Name: stepOf(name), Description: "bring the manifest of " + name + " up to date", Disrupts: "restarts " + name}
	if name == "etcd" {
		about.Timeout = step.Duration(etcdLimit + 2*time.Minute)
	}
	return step.New(about,
		step.Command{Title: "place the manifest of " + name, Argv: argv, Done: placed(c, n, name)},
		step.File{Path: madeFile(name), Mode: 0o600, Content: step.Literal(madeOf(c, n, name))},
	)
}

// etcdArgv places etcd's manifest, with that environment of place.sh, while no other member of the cluster is away, and if the others keep
// quorum meanwhile.
func etcdArgv(c Cluster, n kubelet.Node, environment []string) []string {
	return slices.Concat(podEnvironment(c, n), environment, []string{
		"place=" + fail + place, "back=" + ready + n.Runtime.Enter + pod, "spared=" + fail + component.EtcdLock + etcdSpared,
		"ssl=/etc/kubexm/etcd/ssl", "within=" + seconds(etcdLimit),
		"/bin/sh", "-uc", fail + component.EtcdLock + etcdAlone, "kubeadm",
	})
}

// restart has a pod read its certificates anew, and leaves its manifest as it is otherwise.
func restart(pod string) step.Step {
	return step.New(step.Meta{Name: stepOf(pod), Description: "have " + pod + " read its certificates anew", Disrupts: "restarts " + pod},
		step.Command{Title: "restart " + pod, Argv: placeArgv(pod, "", ""), Done: upToDate(pod)})
}

// etcdLimit is how long others may have the lock of etcd's members.
const etcdLimit = 4 * time.Minute

// placeArgv places the manifest of a pod, which besides what the pod reads must not be older than these files.
func placeArgv(pod, phase, config string, than ...string) []string {
	return slices.Concat([]string{"/usr/bin/env", "dir=" + dir}, placeEnvironment(pod, phase, config, than...),
		[]string{"/bin/sh", "-uc", fail + place, "kubeadm"})
}

func placeEnvironment(pod, phase, config string, than ...string) []string {
	return []string{"component=" + pod, "phase=" + phase, "config=" + config, "reads=" + strings.Join(append(reads(pod), than...), " ")}
}

// placed holds when the manifest of a pod was made of this, nobody has changed it since, and what it reads was not renewed since.
func placed(c Cluster, n kubelet.Node, pod string) step.Done {
	file, done := path.Join(manifestsDir, pod+".yaml"), upToDate(pod)
	done.Contents = []step.Content{{Path: madeFile(pod), Digest: "sha256:" + digest(madeOf(c, n, pod))}}
	done.Same = [][2]string{{file, path.Join(copiesDir, pod+".yaml")}}
	return done
}

// upToDate holds when nothing of what a pod reads when it starts is newer than its manifest: kubeadm writes that last, and so do we.
func upToDate(pod string) step.Done {
	return step.Done{NoOlder: []step.Age{{Path: path.Join(manifestsDir, pod+".yaml"), Than: reads(pod)}}}
}

// madeFile says what the manifest of a pod was made of, by its digest.
func madeFile(pod string) string { return path.Join(copiesDir, pod+".made") }

// madeOf is the digest of what kubeadm makes the manifest of a pod of. What is said of others alone is no part of it, so that they alone
// are changed when that changes.
func madeOf(c Cluster, n kubelet.Node, pod string) string {
	config := clusterConfiguration(c, n)
	for section, read := range map[string][]string{
		"etcd": {"etcd", "kube-apiserver"}, "apiServer": {"kube-apiserver"}, "controllerManager": {"kube-controller-manager"},
		"scheduler": {"kube-scheduler"},
	} {
		if !slices.Contains(read, pod) {
			delete(config, section)
		}
	}
	if own, ok := config["apiServer"].(object); ok {
		delete(own, "certSANs") // its certificate is made of them
	}
	return digest(documents(initConfiguration(c, n), config)) + "\n"
}

// podReady waits, while a change is under way, until a pod is Ready and is the one of its manifest.
func podReady(c Cluster, n kubelet.Node, name string) step.Step {
	return step.New(step.Meta{
		Name: stepOf(name) + "-ready", Description: "wait until " + name + " is Ready with its manifest", Timeout: step.Duration(patience),
	}, step.WaitFor{
		Title: name + " is Ready with its manifest", While: changeDir,
		Check: append(podEnvironment(c, n), "component="+name, "/bin/sh", "-uc", ready+n.Runtime.Enter+pod, "kubeadm"),
	})
}

// podEnvironment is what pod.sh must know, but for the component.
func podEnvironment(c Cluster, n kubelet.Node) []string {
	return append(apiEnvironment(c, n), "change="+changeDir, "logs=/var/log/pods", "never="+strconv.Itoa(step.NotAnyMore))
}

// upload tells the cluster what this host's control plane was made of, for those who join and for people.
func upload(c Cluster, n kubelet.Node) step.Step {
	config := podsConfig(c, n)
	const run = `[ ! -e "$admin" ] || error=$(printf '%s\n' "$config" | kubeadm init phase upload-config all --config /dev/stdin --kubeconfig "$admin" 2>&1 >/dev/null) ||
	fail "kubeadm cannot put its configuration into the cluster: $(printf '%s\n' "$error" | grep -v '^To see the stack trace' | tail -n 1)"`
	return step.New(step.Meta{
		Name: "kubeadm/upload", Description: "tell the cluster what the control plane was made of", Timeout: step.Duration(2 * time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(2 * time.Second), MaxDelay: step.Duration(15 * time.Second)},
	},
		step.Command{
			Title: "upload kubeadm's configuration", Done: rendered(podsFile, config),
			Argv: []string{"/usr/bin/env", "admin=" + adminConf, "config=" + config, "/bin/sh", "-uc", fail + run, "kubeadm"},
		},
		step.File{Path: podsFile, Mode: 0o600, Content: step.Literal(config)},
	)
}

// madePods records that kubeadm has just made the host's static pods. From then on that is for StaticPods to say.
func madePods(c Cluster, n kubelet.Node) step.Step {
	var made []string
	for _, pod := range components(len(c.EtcdEndpoints) == 0) {
		made = append(made, pod+" "+madeOf(c, n, pod))
	}
	return step.Command{Title: "record what kubeadm has made", Argv: []string{
		"/usr/bin/env", "config=" + podsConfig(c, n), "made=" + strings.Join(made, ""),
		"names=" + namesOf(c, n), "dir=" + dir, "/bin/sh", "-uc", fail + madeScript, "kubeadm",
	}}
}

// Uploaded is a gate: it tells the cluster which version those are of that join its control plane from now on, which kubeadm
// asks the cluster for. done is made then.
func Uploaded(c Cluster, after, done graph.Output[string]) step.Step {
	config := documents(object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "kubeadm-config", "namespace": "kube-system"},
		"data": object{"ClusterConfiguration": documents(clusterConfiguration(c, kubelet.Node{}))},
	})
	return step.New(step.Meta{
		Name: "kubeadm/config", Description: "tell the cluster what joins its control plane", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
		Makes: []string{done.Name},
	}, step.Apply{Title: "kubeadm's configuration", Manifest: step.Literal(config), After: []string{after.Name}})
}

// podsConfig is what the static pods are made of.
func podsConfig(c Cluster, n kubelet.Node) string {
	return documents(initConfiguration(c, n), clusterConfiguration(c, n), kubeletConfiguration(c))
}

func initConfiguration(c Cluster, n kubelet.Node) object {
	config := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "localAPIEndpoint": localEndpoint(c, n),
		"nodeRegistration": object{"name": n.Name, "criSocket": n.Runtime.Socket},
	}
	if len(c.EtcdEndpoints) == 0 {
		// Of static pods etcd's alone is patched. Who adopts a host without one may have no such directory there.
		config["patches"] = object{"directory": patches}
	}
	return config
}
