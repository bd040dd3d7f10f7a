// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// EtcdFiles are files on this machine by which an external etcd is trusted, and the API server is known to it. They become
// the Secret that spec.ExternalEtcd names.
type EtcdFiles struct {
	// CA is the certificate of etcd's authority, Cert and Key are what the API server shows; all are PEM.
	CA   string `json:"caFile,omitempty"`
	Cert string `json:"certFile,omitempty"`
	Key  string `json:"keyFile,omitempty"`
}

const etcdPath = "spec.etcd.external"

func etcdFileNames() []string { return []string{"caFile", "certFile", "keyFile"} }

// paths are the files, in the order of etcdFileNames.
func (f *EtcdFiles) paths() []*string { return []*string{&f.CA, &f.Cert, &f.Key} }

// EtcdSecret is the name of the Secret that EtcdFiles become.
func (c *Cluster) EtcdSecret() string { return c.Name + "-etcd-external" }

// takeEtcdFiles takes the files out of the tree: no other part of the program than this one knows files on this machine.
func (r *reading) takeEtcdFiles() EtcdFiles {
	var files EtcdFiles
	for i, path := range files.paths() {
		*path = r.takeText("spec", "etcd", "external", etcdFileNames()[i])
	}
	return files
}

// nameEtcdSecret names the Secret that the files become. Etcd takes all of them or, without TLS, none.
func (r *reading) nameEtcdSecret() {
	const ref = etcdPath + ".secretRef"
	external := &r.cluster.Spec.Etcd.External
	if external.SecretRef.Name != "" {
		at := r.placeOf(ref)
		r.refuseAt(at.path, at.line,
			"the Secret is made of the files that a config file names: remove it, and set caFile, certFile and keyFile")
		r.refused[ref] = true
		return
	}
	var given string
	var missing []string
	for i, path := range r.cluster.EtcdFiles.paths() {
		if name := etcdFileNames()[i]; *path != "" {
			given = name
		} else {
			missing = append(missing, name)
		}
	}
	if given == "" && !external.IsSecure() {
		return
	}
	for _, name := range missing {
		r.refused[ref] = true // it follows from these
		if path := etcdPath + "." + name; !r.isRefused(path) {
			at := r.placeOf(path)
			r.refuseAt(at.path, at.line,
				"Required value: etcd with https needs caFile, certFile and keyFile: give the path of the PEM file on this machine")
		}
	}
	if given != "" {
		external.SecretRef.Name = r.cluster.EtcdSecret()
		r.decoded[ref] = r.placeOf(etcdPath + "." + given)
	}
}

// checkEtcdFiles looks whether the files are there.
func (r *reading) checkEtcdFiles() {
	for i, path := range r.cluster.EtcdFiles.paths() {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = findFile(*path); err != nil {
			at := r.placeOf(etcdPath + "." + etcdFileNames()[i])
			r.refuseAt(at.path, at.line, "the file cannot be used: %v", err)
		}
	}
}
