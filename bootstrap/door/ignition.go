// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
)

//go:embed ignition.service
var ignitionUnit string

const (
	// ignitionVersion is the oldest of Ignition's specifications that has what is needed.
	ignitionVersion = "3.0.0"
	// ignitionScript is where Ignition puts the script, and ignitionService the unit that runs it. Both are in close.sh.
	ignitionScript  = "/etc/kubexm/bootstrap.sh"
	ignitionService = "kubexm-bootstrap.service"
)

// ignitionConfig is the part of an Ignition config that is used here. Ignition's own types would write all that they leave out as null, or
// as an empty object, which not every provider that adds something to bootstrap data expects.
type ignitionConfig struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnitFile `json:"units"`
	} `json:"systemd"`
}

type ignitionFile struct {
	Path      string `json:"path"`
	Mode      int    `json:"mode"`
	Overwrite bool   `json:"overwrite"`
	Contents  struct {
		Source string `json:"source"`
	} `json:"contents"`
}

type ignitionUnitFile struct {
	Name     string `json:"name"`
	Enabled  bool   `json:"enabled"`
	Contents string `json:"contents"`
}

// Ignition is an Ignition config that runs a script once: a unit removes the script when that has succeeded, so that a host that is
// started again does not open a door that was closed. Until then, it is run again every few seconds, and at each start. Close removes
// both.
func Ignition(script string) ([]byte, error) {
	file := ignitionFile{Path: ignitionScript, Mode: 0o700, Overwrite: true}
	file.Contents.Source = "data:;base64," + base64.StdEncoding.EncodeToString([]byte(script))
	var c ignitionConfig
	c.Ignition.Version = ignitionVersion
	c.Storage.Files = []ignitionFile{file}
	c.Systemd.Units = []ignitionUnitFile{{Name: ignitionService, Enabled: true, Contents: ignitionUnit}}
	return json.Marshal(c)
}
