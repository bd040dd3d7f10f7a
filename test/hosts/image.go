// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

const (
	imageRepository = "kubexm-testhost"
	imageSuite      = "bookworm"
	imageEntrypoint = "/usr/local/sbin/testhost-init"
)

//go:embed image
var recipeFiles embed.FS

// imageOptions are the options of mmdebstrap that shape the image. Manuals would
// double the number of files, which costs at every Snapshot.
func imageOptions() []string {
	return []string{
		"--variant=minbase",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/man/*",
	}
}

// Image returns the name of the test hosts' Docker image,
// "kubexm-testhost:<digest of the recipe>".
func Image() (string, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s %s %s %q\n", imageSuite, runtime.GOARCH, imageEntrypoint, imageOptions())
	err := fs.WalkDir(recipeFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := recipeFiles.ReadFile(path)
		fmt.Fprintf(digest, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the image recipe: %w", err)
	}
	return imageRepository + ":" + hex.EncodeToString(digest.Sum(nil))[:12], nil
}

// EnsureImage makes the image of the current recipe known to Docker and returns
// its name. It takes, in this order, what Docker has, the archive in the cache
// directory, and a new build by mmdebstrap, which it then keeps as that archive.
// Processes that need it at once build it once.
func EnsureImage(ctx context.Context, log func(format string, args ...any)) (string, error) {
	image, err := Image()
	if err != nil {
		return "", err
	}
	if found, err := imageExists(ctx, image); err != nil || found {
		return image, err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, imageRepository+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if found, err := imageExists(ctx, image); err != nil || found {
		return image, err
	}
	archive := filepath.Join(cache, strings.ReplaceAll(image, ":", "-")+".tar.zst")
	if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) {
		log("building %s with mmdebstrap", image)
		if err := buildArchive(ctx, archive); err != nil {
			return "", fmt.Errorf("build %s: %w", image, err)
		}
	} else if err != nil {
		return "", err
	}
	log("importing %s from %s", image, archive)
	if err := importArchive(ctx, archive, image); err != nil {
		return "", fmt.Errorf("import %s from %s (remove the file to build it anew): %w", image, archive, err)
	}
	return image, nil
}

func imageExists(ctx context.Context, image string) (bool, error) {
	id, err := docker(ctx, nil, "image", "ls", "--quiet", image)
	return id != "", err
}

// buildArchive writes the root file system as a zstd-compressed tar to path, which
// is there afterwards whole or not at all.
func buildArchive(ctx context.Context, path string) error {
	recipe, err := os.MkdirTemp("", imageRepository)
	if err != nil {
		return err
	}
	defer os.RemoveAll(recipe)
	packages, err := unpackRecipe(recipe)
	if err != nil {
		return err
	}
	partial, err := os.CreateTemp(filepath.Dir(path), ".partial-")
	if err != nil {
		return err
	}
	defer os.Remove(partial.Name())
	defer partial.Close()
	compressed, err := zstd.NewWriter(partial)
	if err != nil {
		return err
	}

	var stderr bytes.Buffer
	// Without a mirror in the arguments mmdebstrap takes the suite's own, with
	// security updates.
	args := append(imageOptions(), "--quiet",
		"--include="+strings.Join(packages, ","),
		"--customize-hook="+filepath.Join(recipe, "customize.sh"),
		imageSuite, "-")
	cmd := exec.CommandContext(ctx, "mmdebstrap", args...)
	cmd.Stdout, cmd.Stderr = compressed, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%w; install it with: apt-get install mmdebstrap", err)
		}
		return fmt.Errorf("mmdebstrap: %w: %s", err, tail(stderr.String(), 15))
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	if err := partial.Sync(); err != nil {
		return err
	}
	return os.Rename(partial.Name(), path)
}

// unpackRecipe writes the recipe's files to dir and returns the packages it names.
func unpackRecipe(dir string) ([]string, error) {
	// mmdebstrap's hooks may run as another user than ours.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := recipeFiles.ReadDir("image")
	if err != nil {
		return nil, err
	}
	var packages []string
	for _, entry := range entries {
		content, err := recipeFiles.ReadFile("image/" + entry.Name())
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), content, 0o755); err != nil {
			return nil, err
		}
		if entry.Name() != "packages.txt" {
			continue
		}
		for _, line := range lines(string(content)) {
			if !strings.HasPrefix(line, "#") {
				packages = append(packages, line)
			}
		}
	}
	return packages, nil
}

func importArchive(ctx context.Context, path, image string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := zstd.NewReader(file)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = docker(ctx, content.IOReadCloser(), "import",
		"--change", fmt.Sprintf("ENTRYPOINT [%q]", imageEntrypoint),
		"--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"-", image)
	return err
}

// cacheDir returns the project's cache directory and creates it.
func cacheDir() (string, error) {
	dir := os.Getenv("KUBEXM_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache directory (KUBEXM_CACHE names one): %w", err)
		}
		dir = filepath.Join(user, "kubexm")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// lock takes an advisory lock on path, waiting for another process that has it.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// tail returns the last n lines of text on one line.
func tail(text string, n int) string {
	all := lines(text)
	return strings.Join(all[max(0, len(all)-n):], " | ")
}
