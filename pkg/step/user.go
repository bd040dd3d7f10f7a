// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// User is a system account, with a group of the same name, that a service runs as. It has no password, no shell and no home. One
// that the host has already is used as it is, and stays when the step is undone.
type User struct {
	Name string `json:"name"`
}

// Meta names the kind.
func (u User) Meta() Meta { return Meta{Name: "user"} }

// Observe asks for the account and its group.
func (u User) Observe() host.Query {
	return host.Query{Commands: []host.CommandQuery{
		{ID: u.key("user"), Argv: []string{"getent", "passwd", u.Name}},
		{ID: u.key("group"), Argv: []string{"getent", "group", u.Name}},
	}}
}

func (u User) key(kind string) string { return kind + " " + u.Name }

// has reports whether the host has the account (user) or its group (group).
func (u User) has(v View, kind string) bool {
	r, asked := v.Facts.Commands[u.key(kind)]
	return asked && r.ExitCode == 0
}

// Precheck differs when the account or its group does not exist.
func (u User) Precheck(v View) (Diff, error) {
	var d Diff
	for _, q := range u.Observe().Commands {
		if _, err := answerTo(v, q); err != nil {
			return nil, err
		}
	}
	for _, kind := range []string{"group", "user"} {
		if !u.has(v, kind) {
			d = append(d, Delta{u.key(kind), "absent", "a system account"})
		}
	}
	return d, nil
}

// The scripts make and remove the account $1. The comment tells an account that was made here. userdel removes the group too; where
// that was there before ($2 is keep) it is made again.
const (
	addUser = `getent group "$1" >/dev/null || groupadd --system "$1"
getent passwd "$1" >/dev/null ||
	useradd --system --gid "$1" --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin --comment "made by kubexm" "$1"`
	removeUser = `gid=$(getent group "$1" | cut -d: -f3)
case $(getent passwd "$1") in *:'made by kubexm':*) userdel "$1" ;; esac
if [ "$2" = keep ]; then
	[ -z "$gid" ] || getent group "$1" >/dev/null || groupadd --system --gid "$gid" "$1"
elif [ -n "$gid" ] && getent group "$1" >/dev/null && ! getent passwd "$1" >/dev/null; then
	groupdel "$1"
fi`
)

// Effect makes the account.
func (u User) Effect(v View) (Effect, error) {
	keep := "remove"
	if u.has(v, "group") {
		keep = "keep"
	}
	argv := func(script string, more ...string) []string {
		return append([]string{"/bin/sh", "-euc", script, "sh", u.Name}, more...)
	}
	return changes(host.Command{Title: "make the account " + u.Name, Argv: argv(addUser), Undo: argv(removeUser, keep)}), nil
}

// Run makes the account.
func (u User) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, u) }

// Rollback removes the account, if it was made here.
func (u User) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }
