// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
)

//go:embed rekey.sh
var rekeyScript string

//go:embed retire.sh
var retireScript string

//go:embed settle.sh
var settleScript string

//go:embed close.sh
var closeScript string

//go:embed gone.sh
var goneScript string

// madeType is the type of keys that are made on hosts.
const madeType = "ecdsa-sha2-nistp521"

// limit is how long one script may take.
const limit = time.Minute

// Rekey has a key made on the host, if it has none of ours yet, has sshd show it beside the birth key, and returns its public half as in
// authorized_keys. It may be called again.
func Rekey(ctx context.Context, h host.Host) (string, error) {
	out, err := run(ctx, h, "make a host key", rekeyScript+settleScript)
	if err != nil {
		return "", err
	}
	key, kind, err := ssh.PublicKey(out)
	if err != nil || kind != madeType {
		return "", &host.Error{Kind: host.KindProtocol, Host: h.Name(), Message: "the host key that was made there is none of ECDSA P-521"}
	}
	return key, nil
}

// Retire takes the birth key away from a host that has a key of its own. It may be called again. Who calls it has that key stored.
func Retire(ctx context.Context, h host.Host) error {
	_, err := run(ctx, h, "remove the birth key", retireScript+settleScript)
	return err
}

// Nonce is by whose bootstrap data the host was opened, "" if that has not ended yet.
func Nonce(ctx context.Context, h host.Host) (string, error) {
	return run(ctx, h, "read whose door it is", "said \"$D/nonce\"\n")
}

// Close undoes what the bootstrap data made. Nobody gets in by it afterwards, so it is the last that is done on a host; a user that was
// made goes when the connection has ended. A host that was never opened is left as it is.
func Close(ctx context.Context, h host.Host) error {
	_, err := run(ctx, h, "close the door", closeScript, variable{"gone", compact(goneScript)})
	return err
}

func run(ctx context.Context, h host.Host, title, body string, variables ...variable) (string, error) {
	r, err := h.Exec(ctx, host.Command{Title: title, Argv: []string{"/bin/sh", "-c", script(homeScript+body, variables...)}, Timeout: limit})
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 {
		return "", &host.Error{
			Kind: host.KindCommand, Host: h.Name(), ExitCode: r.ExitCode, Message: "cannot " + title,
			Err: fmt.Errorf("%s", host.Word(string(r.Stderr), 500)),
		}
	}
	return strings.TrimSpace(string(r.Stdout)), nil
}
