// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

//go:embed members.sh
var members string

// etcdMembers is the ID of the command.
const etcdMembers = "members of etcd in a static pod"

// MembersQuery asks a control plane host with this runtime who the members of etcd are.
func MembersQuery(runtime kubelet.Runtime) host.Query {
	return host.Query{Commands: []host.CommandQuery{{ID: etcdMembers, Argv: []string{"/bin/sh", "-uc", runtime.Enter + members, "etcd"}}}}
}

// Members are what a host has said that was asked MembersQuery.
func Members(seen *host.Facts) ([]quorum.Member, error) {
	said := seen.Commands[etcdMembers]
	if said.ExitCode != 0 || said.Stopped > 0 {
		return nil, errors.New("etcd's static pod does not say who the members are: " + lastLine(said.Stderr, said.Stdout))
	}
	var list struct {
		Members []struct {
			ID       uint64   `json:"ID"`
			Name     string   `json:"name"`
			PeerURLs []string `json:"peerURLs"`
		} `json:"members"`
	}
	if err := json.Unmarshal(said.Stdout, &list); err != nil {
		return nil, errors.New("what etcd says of its members is not understood")
	}
	var all []quorum.Member
	for _, m := range list.Members {
		if len(m.PeerURLs) != 1 {
			return nil, fmt.Errorf("the member %x of etcd has %d peer URLs", m.ID, len(m.PeerURLs))
		}
		all = append(all, quorum.Member{ID: strconv.FormatUint(m.ID, 16), Name: m.Name, PeerURL: m.PeerURLs[0]})
	}
	return all, nil
}

func lastLine(outputs ...[]byte) string {
	for _, o := range outputs {
		if lines := strings.Split(strings.TrimSpace(string(o)), "\n"); lines[len(lines)-1] != "" {
			return host.Word(lines[len(lines)-1], 300)
		}
	}
	return "it was stopped"
}
