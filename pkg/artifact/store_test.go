// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// holdVariable makes the test binary a process that begins to make something in the store that it names, and never ends.
const holdVariable = "KUBEXM_TEST_HOLD"

func TestMain(m *testing.M) {
	if root := os.Getenv(holdVariable); root != "" {
		hold(root)
	}
	goleak.VerifyTestMain(m)
}

type testRecipe struct{ Name string }

func hold(root string) {
	s, err := OpenStore(root)
	if err == nil {
		_, err = s.produce(context.Background(), testRecipe{"it"}, 0o644, nil, func(_ context.Context, ws workspace) error {
			if err := os.WriteFile(filepath.Join(ws.out, "half"), []byte("half"), 0o644); err != nil {
				return err
			}
			never := make(chan os.Signal, 1) // which the runtime does not call a deadlock, and end, as it would a select without cases
			signal.Notify(never, syscall.SIGUSR1)
			os.Stdout.WriteString("begun\n")
			<-never
			return errors.New("asked to end")
		})
	}
	os.Stdout.WriteString(err.Error() + "\n")
	os.Exit(1)
}

func writes(name, content string) func(context.Context, workspace) error {
	return func(_ context.Context, ws workspace) error {
		return os.WriteFile(filepath.Join(ws.out, name), []byte(content), 0o600)
	}
}

func openStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreMakesOnce(t *testing.T) {
	s := openStore(t)
	var made atomic.Int32
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			r, err := s.produce(t.Context(), testRecipe{"it"}, 0o755, nil, func(ctx context.Context, ws workspace) error {
				made.Add(1)
				return writes("tool", "content")(ctx, ws)
			})
			if err != nil {
				t.Error(err)
				return
			}
			f, ok := r.file("tool")
			if !ok || f.Blob != oci.BlobOf([]byte("content")) {
				t.Errorf("files: %+v", r.Files)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
	info, err := os.Stat(s.blob(oci.BlobOf([]byte("content")).SHA256))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("blob: %v, %v", info, err)
	}
	empty(t, filepath.Join(s.root, "work"))
}

func TestStoreAfterFailure(t *testing.T) {
	s := openStore(t)
	broken := errors.New("broken")
	if _, err := s.produce(t.Context(), testRecipe{"it"}, 0o644, nil, func(ctx context.Context, ws workspace) error {
		return errors.Join(writes("half", "half")(ctx, ws), broken)
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	empty(t, filepath.Join(s.root, "work"))
	r, err := s.produce(t.Context(), testRecipe{"it"}, 0o644, nil, writes("whole", "whole"))
	if err != nil || len(r.Files) != 1 || r.Files[0].Name != "whole" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestStoreMakesAnew: a blob or record that is gone or cut short is not taken for what it was.
func TestStoreMakesAnew(t *testing.T) {
	for name, damage := range map[string]func(s *Store, key, blob string) error{
		"blob gone":        func(_ *Store, _, blob string) error { return os.Remove(blob) },
		"blob cut short":   func(_ *Store, _, blob string) error { return os.Truncate(blob, 1) },
		"record cut short": func(s *Store, key, _ string) error { return os.Truncate(s.recordPath(key), 10) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			r, err := s.produce(t.Context(), testRecipe{"it"}, 0o644, nil, writes("f", "content"))
			if err != nil {
				t.Fatal(err)
			}
			key, _, err := keyOf(testRecipe{"it"})
			if err := errors.Join(err, damage(s, key, s.blob(r.Files[0].SHA256))); err != nil {
				t.Fatal(err)
			}
			made := false
			if _, err := s.produce(t.Context(), testRecipe{"it"}, 0o644, nil, func(ctx context.Context, ws workspace) error {
				made = true
				return writes("f", "content")(ctx, ws)
			}); err != nil || !made {
				t.Errorf("made: %t, %v", made, err)
			}
			if got, err := os.ReadFile(s.blob(r.Files[0].SHA256)); string(got) != "content" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestStoreKilled(t *testing.T) {
	root := t.TempDir()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"="+root)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatal(line, err)
	}

	// While it lives, it has the lock, and its work is left alone.
	s, err := OpenStore(root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.produce(ctx, testRecipe{"it"}, 0o644, cancel, writes("whole", "whole"))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the lock of another process: %v", err)
	}
	key, _, _ := keyOf(testRecipe{"it"})
	half := filepath.Join(root, "work", key, "out", "half")
	if _, err := os.Stat(half); err != nil {
		t.Fatal(err)
	}

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed
	if s, err = OpenStore(root); err != nil {
		t.Fatal(err)
	}
	empty(t, filepath.Join(root, "work"))
	r, err := s.produce(t.Context(), testRecipe{"it"}, 0o644, nil, writes("whole", "whole"))
	if err != nil || len(r.Files) != 1 || r.Files[0].Name != "whole" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestOpenStoreDefault(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv(CacheVariable, "")
	if s, err := OpenStore(""); err != nil || s.Root() != filepath.Join(dir, "kubexm") {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv(CacheVariable, filepath.Join(dir, "elsewhere"))
	if s, err := OpenStore(""); err != nil || s.Root() != filepath.Join(dir, "elsewhere") {
		t.Errorf("%+v, %v", s, err)
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s: %v, %v", dir, entries, err)
	}
}
