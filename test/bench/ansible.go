// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// ansibleConfig is Ansible as fast as its settings make it.
const ansibleConfig = `[defaults]
forks = 20
gathering = explicit
host_key_checking = True
retry_files_enabled = False
[ssh_connection]
pipelining = True
ssh_args = -F %s -o ControlMaster=auto -o ControlPersist=60s
`

// playbook writes the sixty settings as a playbook and returns what plays it, or nil when Ansible is not installed.
func (l *lab) playbook(hosts []string) (play func(context.Context) error, err error) {
	program, err := exec.LookPath("ansible-playbook")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	var tasks, services []object
	for _, s := range allSettings() {
		tasks = append(tasks, object{"ansible.builtin.copy": object{"dest": s.path, "content": s.content, "mode": "0644"}})
		if s.unit != "" {
			services = append(services, object{"ansible.builtin.systemd": object{"name": s.unit, "enabled": true, "state": "started"}})
		}
	}
	directory := object{"ansible.builtin.file": object{"path": "/etc/bench", "state": "directory"}}
	book, err := yaml.Marshal([]object{{
		"hosts": "all", "become": true, "gather_facts": false,
		"tasks": append(append([]object{directory}, tasks...), services...),
	}})
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(l.dir, "ansible")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for name, content := range map[string]string{
		"ansible.cfg":  fmt.Sprintf(ansibleConfig, filepath.Join(l.dir, "ssh_config")),
		"hosts":        strings.Join(hosts, "\n") + "\n",
		"playbook.yml": string(book),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, program, "-i", "hosts", "playbook.yml")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "ANSIBLE_CONFIG="+filepath.Join(dir, "ansible.cfg"), "LC_ALL=C.UTF-8")
		return run(cmd, nil)
	}, nil
}
