// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// config is the file that says how etcd runs: the unit, or the template of the pod.
func (s Settings) config() (file, content string) {
	if s.Form == Pod {
		return template, s.pod()
	}
	return unitPath, s.unit()
}

func (s Settings) unit() string {
	var flags strings.Builder
	for _, f := range s.flags() {
		flags.WriteString(" \\\n  " + inUnit(f))
	}
	return `[Unit]
Description=etcd, the store of Kubernetes
Documentation=https://etcd.io/docs/
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
# Without it, or with nothing in it, an etcd that has no data would begin a cluster of its own.
AssertFileNotEmpty=` + dir + `/initial.env

[Service]
Type=notify
# How the member began. One that has data goes by that.
EnvironmentFile=` + dir + `/initial.env
User=` + account + `
Group=` + account + `
# What root has put there, such as a restored snapshot, becomes etcd's.
` + s.chown() + `ExecStart=` + bin + `/etcd` + flags.String() + `
Restart=on-failure
RestartSec=2
# It is ready when it is in a cluster with quorum. After a power cut that takes as long as others need to boot.
TimeoutStartSec=infinity
# Its age tells since when etcd runs.
RuntimeDirectory=` + runtime + `
UMask=0077
LimitNOFILE=65536
OOMScoreAdjust=-999
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=multi-user.target
`
}

// chown gives etcd its data, before it is started. A write-ahead log elsewhere is there only later.
func (s Settings) chown() string {
	lines := "ExecStartPre=+/bin/chown -R " + account + ":" + account + " " + inUnit(s.Spec.DataDir) + "\n"
	if own := s.ownWALDir(); own != "" {
		lines += "ExecStartPre=-+/bin/chown -R " + account + ":" + account + " " + inUnit(own) + "\n"
	}
	return lines
}

// inUnit quotes a word of ExecStart.
func inUnit(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(word) + `"`
}

type object map[string]any

// pod is the static pod, with a few words in @ that the host puts in: how the member begins, which it knows only then, and a
// digest of this template and of the certificate authority, which etcd reads only when it starts.
func (s Settings) pod() string {
	probe := func(at string, failures int) object {
		return object{
			"httpGet":          object{"host": "127.0.0.1", "port": 2381, "path": at, "scheme": "HTTP"},
			"failureThreshold": failures, "periodSeconds": 10, "timeoutSeconds": 15,
		}
	}
	mounts := []object{
		{"name": "data", "mountPath": s.Spec.DataDir}, {"name": "ssl", "mountPath": ssl, "readOnly": true},
		{"name": "begun", "mountPath": begun, "readOnly": true},
	}
	volumes := []object{
		{"name": "data", "hostPath": object{"path": s.Spec.DataDir, "type": "DirectoryOrCreate"}},
		{"name": "ssl", "hostPath": object{"path": ssl, "type": "Directory"}},
		{"name": "begun", "hostPath": object{"path": begun, "type": "Directory"}},
	}
	if own := s.ownWALDir(); own != "" {
		// etcd makes it under another name and renames it, which it could not if it were a mount itself.
		parent := path.Dir(own)
		mounts = append(mounts, object{"name": "wal", "mountPath": parent})
		volumes = append(volumes, object{"name": "wal", "hostPath": object{"path": parent, "type": "DirectoryOrCreate"}})
	}
	// Strings, numbers, lists and maps of them always marshal.
	text, _ := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{
			"name": "etcd", "namespace": "kube-system", "labels": object{"component": "etcd", "tier": "control-plane"},
			"annotations": object{"kubexm.cluster.x-k8s.io/config": "@CONFIG@"},
		},
		"spec": object{
			"hostNetwork": true, "priorityClassName": "system-node-critical", "priority": 2000001000,
			"securityContext": object{"seccompProfile": object{"type": "RuntimeDefault"}},
			"containers": []object{{
				"name": "etcd", "image": s.Image, "imagePullPolicy": "IfNotPresent", "command": append([]string{"etcd"}, s.flags()...),
				"env": []object{
					{"name": "ETCD_INITIAL_CLUSTER", "value": "@INITIAL_CLUSTER@"},
					{"name": "ETCD_INITIAL_CLUSTER_STATE", "value": "@INITIAL_CLUSTER_STATE@"},
					{"name": "ETCD_INITIAL_CLUSTER_TOKEN", "value": "@INITIAL_CLUSTER_TOKEN@"},
				},
				"resources":     object{"requests": object{"cpu": "100m", "memory": "100Mi"}},
				"startupProbe":  probe("/livez", 24),
				"livenessProbe": probe("/livez", 8),
				"volumeMounts":  mounts,
			}},
			"volumes": volumes,
		},
	})
	return string(text)
}
