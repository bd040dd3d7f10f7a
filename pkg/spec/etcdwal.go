// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// walFlag is etcd's flag for the directory of its write-ahead log, where that is not in its data.
const walFlag = "wal-dir"

// flag is where args have the flag of this name, and its value; -1 where they do not.
func flag(args []Arg, name string) (int, string) {
	i := slices.IndexFunc(args, func(a Arg) bool { return a.Name == name })
	if i < 0 {
		return i, ""
	}
	return i, args[i].Value
}

// ownWAL is where extraArgs have the write-ahead log elsewhere than etcd has it by itself, and where they say so.
func (e *Etcd) ownWAL() (int, string) {
	i, wal := flag(e.ExtraArgs, walFlag)
	if wal == path.Join(e.DataDir, "member", "wal") {
		return i, ""
	}
	return i, wal
}

// validateWAL checks the place of the write-ahead log. etcd makes the log beside it and renames that, so what is around it becomes etcd's
// own; and a reset, a restore and a member that joins anew remove it as a whole.
func (e *Etcd) validateWAL(args *field.Path) field.ErrorList {
	i, wal := e.ownWAL()
	if wal == "" {
		return nil
	}
	at := args.Index(i).Child("value")
	if errs := validateDataDir(at, wal); len(errs) > 0 {
		return errs
	}
	around, member := path.Dir(wal), path.Join(e.DataDir, "member")
	switch {
	case len(validateDataDir(at, around)) > 0:
		return field.ErrorList{field.Invalid(at, wal, fmt.Sprintf("other things may lie in %s, which would become etcd's own, because "+
			"etcd makes its log beside the place of it: use a directory in one that is for it alone, such as %s. "+
			"An etcd that is to be adopted moves its log first",
			around, path.Join(wal, "wal")))}
	case isWithin(e.DataDir, wal), isWithin(wal, member):
		return field.ErrorList{field.Invalid(at, wal, fmt.Sprintf(
			"etcd would remove its data in %s when it makes the log: use a directory of its own, on another disk or such as %s",
			member, path.Join(e.DataDir, "wal")))}
	case e.Backup.Directory != "" && (isWithin(e.Backup.Directory, wal) || isWithin(wal, e.Backup.Directory)):
		return field.ErrorList{field.Invalid(at, wal, fmt.Sprintf(
			"lies in, or around, backup.directory %s: use directories of their own", e.Backup.Directory))}
	}
	return nil
}

// validateWALTogether refuses a log beside which others have their data, and one that members could not keep. One that is bad in itself is
// passed over.
func (c *Cluster) validateWALTogether(cluster *field.Path) field.ErrorList {
	i, wal := c.Etcd.ownWAL()
	if wal == "" || c.Etcd.IsExternal() {
		return nil
	}
	at := cluster.Child("etcd", "extraArgs").Index(i)
	if etcds[c.Etcd.Type].pods && kubernetes[c.Kubernetes.Type].pods {
		return field.ErrorList{field.Forbidden(at.Child("name"), fmt.Sprintf(
			"%s gives etcd's pod %s alone, and a log elsewhere would be lost with its container: remove it, or set %s or %s to Binary",
			c.Kubernetes.Type, cluster.Child("etcd", "dataDir"), cluster.Child("etcd", "type"), cluster.Child("kubernetes", "type")))}
	}
	around, runtime := path.Dir(wal), c.ContainerRuntime.DataDir
	if len(validateDataDir(at, around)) > 0 || runtime == "" || !isWithin(around, runtime) && !isWithin(runtime, around) {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("value"), wal, fmt.Sprintf(
		"%s, which would become etcd's own, lies in, or around, %s %s: use directories of their own",
		around, cluster.Child("containerRuntime", "dataDir"), runtime))}
}

// validateWALUpdate refuses another place of the log: members would look for it there, find no data and not start.
func (e *Etcd) validateWALUpdate(before *Etcd, args *field.Path, refuse refuser) {
	_, had := before.ownWAL()
	_, has := e.ownWAL()
	if was, is := said(walFlag, had), said(walFlag, has); was != is {
		refuse(args, was, is)
	}
}
