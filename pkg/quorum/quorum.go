// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quorum asks etcd on a host for its members and alarms, no matter who runs it there:
//
//	Query(name, address)   what the host is asked, beside whatever else is asked in that exchange
//	In(facts)              what etcd said
//
// etcd answers for all of its members, and only while it has quorum. What it says comes from a host, which may say anything.
package quorum

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Most is how many members etcd may tell of. It is made for seven.
const Most = 32

// MostAlarms is how many alarms it may tell of.
const MostAlarms = 64

const (
	longestName = 253
	longestURL  = 512
)

// View is etcd as one of its members tells of it.
type View struct {
	// At is when it was asked, by our clock; zero if the host does not tell.
	At time.Time
	// Cluster and Own are the IDs of the cluster and of the member that answered, in hexadecimal digits.
	Cluster, Own string
	Members      []Member
	Alarms       []Alarm
}

// Member is one of them, the host's own or another.
type Member struct {
	// ID is in hexadecimal digits. Name is what it calls itself: "" if it has never started.
	ID, Name string
	// PeerURL is the first URL at which the others reach it.
	PeerURL string
	// Learner says that it has no vote yet.
	Learner bool
}

// Alarm is one that a member has raised.
type Alarm struct {
	// Member is its ID, which need not be among the members any more.
	Member string
	// Type is NOSPACE, CORRUPT, or what else etcd calls it.
	Type string
}

//go:embed look.sh
var look string

// answer names that of the script.
const answer = "etcd-members"

// Query asks the host with that name and address, at which its member is reached. It needs the administrator's certificate that every
// host with a member has.
func Query(name, address string) host.Query {
	return host.Query{Commands: []host.CommandQuery{{ID: answer, Argv: []string{
		"/usr/bin/env", "name=" + name, "host=" + host.InURL(address), "dir=/etc/kubexm/etcd", "/bin/sh", "-uc", look, "etcd",
	}}}}
}

// Asked reports whether a host was asked Query.
func Asked(facts *host.Facts) bool {
	_, asked := facts.Commands[answer]
	return asked
}

// In is what etcd said to a host that was asked Query. The error says that it is not known, and why; then nothing of the view counts
// but At.
func In(facts *host.Facts) (View, error) {
	result, asked := facts.Commands[answer]
	if !asked {
		return View{}, errors.New("the host was not asked for etcd's members")
	}
	return Of(result, facts.ClockSkew)
}

// Of is In for what a host with this clock skew has said that was asked by other means for the same.
func Of(result host.Result, skew time.Duration) (View, error) {
	v := View{}
	said := map[string]string{}
	for line := range strings.Lines(string(result.Stdout)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, twice := said[word]; !twice {
			said[word] = rest
		}
	}
	if nanoseconds, err := strconv.ParseInt(said["asked"], 10, 64); err == nil && nanoseconds > 0 {
		v.At = time.Unix(0, nanoseconds).Add(-skew).UTC()
	}
	switch {
	case result.Stopped > 0:
		return v, fmt.Errorf("etcd was asked for its members, and the host did not say what it answers within %s", result.Stopped)
	case result.ExitCode != 0:
		why := host.Word(cmp.Or(said["why"], string(result.Stderr)), longestURL)
		if why == "" {
			why = fmt.Sprintf("the question for etcd's members ended with exit code %d and without a word", result.ExitCode)
		}
		return v, errors.New(why)
	case len(result.Stdout) >= host.MaxContent:
		return v, fmt.Errorf("etcd's list of members is cut off: it has more than %d bytes", host.MaxContent)
	}
	if err := v.read([]byte(said["members"]), []byte(said["alarms"])); err != nil {
		return View{At: v.At}, fmt.Errorf("etcd's list of members is not understood: %w", err)
	}
	return v, nil
}

// header is what each answer begins with.
type header struct {
	Cluster uint64 `json:"cluster_id"`
	Member  uint64 `json:"member_id"`
}

func (v *View) read(members, alarms []byte) error {
	var list struct {
		Header  header `json:"header"`
		Members []struct {
			ID        uint64   `json:"ID"`
			Name      string   `json:"name"`
			PeerURLs  []string `json:"peerURLs"`
			IsLearner bool     `json:"isLearner"`
		} `json:"members"`
	}
	if err := json.Unmarshal(members, &list); err != nil {
		return err
	}
	var raised struct {
		Header header `json:"header"`
		Alarms []struct {
			Member uint64          `json:"memberID"`
			Type   json.RawMessage `json:"alarm"`
		} `json:"alarms"`
	}
	if err := json.Unmarshal(alarms, &raised); err != nil {
		return fmt.Errorf("alarms: %w", err)
	}
	switch {
	case list.Header.Member == 0, len(list.Members) == 0:
		return errors.New("it is empty")
	case len(list.Members) > Most:
		return fmt.Errorf("%d members, where %d are the most", len(list.Members), Most)
	case len(raised.Alarms) > MostAlarms:
		return fmt.Errorf("%d alarms, where %d are the most", len(raised.Alarms), MostAlarms)
	case raised.Header != list.Header:
		return errors.New("members and alarms were reported by different members")
	}
	v.Cluster, v.Own = hexadecimal(list.Header.Cluster), hexadecimal(list.Header.Member)
	seen := map[string]bool{}
	for _, m := range list.Members {
		one := Member{ID: hexadecimal(m.ID), Name: host.Word(m.Name, longestName), Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			one.PeerURL = host.Word(m.PeerURLs[0], longestURL)
		}
		if seen[one.ID] {
			return fmt.Errorf("the member %s is there twice", one.ID)
		}
		seen[one.ID] = true
		v.Members = append(v.Members, one)
	}
	if !seen[v.Own] {
		return fmt.Errorf("the member %s, which tells it, is not in it", v.Own)
	}
	for _, a := range raised.Alarms {
		v.Alarms = append(v.Alarms, Alarm{Member: hexadecimal(a.Member), Type: typeOf(a.Type)})
	}
	return nil
}

func hexadecimal(id uint64) string { return strconv.FormatUint(id, 16) }

// typeOf is an alarm's type: etcdctl prints its number, or, perhaps, its name.
func typeOf(raw json.RawMessage) string {
	const longest = 64
	switch text := strings.Trim(string(raw), `"`); text {
	case "1":
		return "NOSPACE"
	case "2":
		return "CORRUPT"
	default:
		return host.Word(text, longest)
	}
}

// Address is the address in a peer URL, in its one form; "" if there is none.
func Address(peerURL string) string {
	parsed, err := url.Parse(peerURL)
	if err != nil {
		return ""
	}
	if at, err := netip.ParseAddr(parsed.Hostname()); err == nil {
		return at.String()
	}
	return parsed.Hostname()
}
