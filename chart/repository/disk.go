// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/chart/lru"
	"shipper.dev/shipper/chart/verify"
)

// partial is the prefix of files that are being written. Those left by a former process are deleted later.
const (
	partial        = ".partial-"
	partialGoesOff = time.Hour
)

// archiveKey identifies an archive.
type archiveKey struct {
	digest              string
	repo, name, version string
	// scope is where an archive fetched with credentials may be used; empty without credentials: it may be used everywhere.
	scope string
}

// stored is the key for storing the archive: its digest, or its origin when no digest is known.
func (k archiveKey) stored() archiveKey {
	if k.digest != "" {
		return archiveKey{digest: k.digest, scope: k.scope}
	}
	return k
}

// file is the name the archive has on disk.
func (k archiveKey) file() string {
	suffix := ""
	if k.scope != "" {
		sum := sha256.Sum256([]byte(k.scope))
		suffix = "-" + hex.EncodeToString(sum[:])
	}
	if k.digest != "" {
		return "sha256-" + k.digest + suffix + ".tgz"
	}
	sum := sha256.Sum256([]byte(k.repo + "\x00" + k.name + "\x00" + k.version))
	return "from-" + hex.EncodeToString(sum[:]) + suffix + ".tgz"
}

// disk keeps archives in a folder, up to a size. It logs its errors and then behaves as if it had no such archive, because
// archives can be fetched again. A nil disk keeps none.
type disk struct {
	dir   string
	clock clock.PassiveClock
	log   logr.Logger
	files *lru.Cache[string, struct{}]
}

// openDisk loads the archives that an earlier process left in dir, least recently used first.
func openDisk(dir string, most int64, clk clock.PassiveClock, log logr.Logger) *disk {
	if dir == "" {
		return nil
	}
	d := &disk{dir: dir, clock: clk, log: log, files: lru.New[string, struct{}](most)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.complain("Could not make the folder for chart archives", err)
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		d.complain("Could not read the folder for chart archives", err)
		return nil
	}
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, info := range infos {
		switch {
		case filepath.Ext(info.Name()) == ".tgz":
			d.count(info.Name(), info.Size())
		case strings.HasPrefix(info.Name(), partial) && clk.Since(info.ModTime()) > partialGoesOff:
			d.remove(info.Name())
		}
	}
	return d
}

// get reads an archive. It checks the digest, because files may be corrupt or written by other processes.
func (d *disk) get(key archiveKey) ([]byte, bool) {
	if d == nil {
		return nil, false
	}
	name := key.file()
	archive, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.complain("Could not read a chart archive", err)
		}
		return nil, false
	}
	if key.digest != "" && verify.DigestOf(archive) != key.digest {
		d.drop(key)
		return nil, false
	}
	now := d.clock.Now()
	if err := os.Chtimes(filepath.Join(d.dir, name), now, now); err != nil {
		d.complain("Could not note the use of a chart archive", err)
	}
	d.count(name, int64(len(archive)))
	return archive, true
}

// put writes an archive completely or not at all.
func (d *disk) put(key archiveKey, archive []byte) {
	if d == nil {
		return
	}
	if err := d.write(key.file(), archive); err != nil {
		d.complain("Could not keep a chart archive", err)
		return
	}
	d.count(key.file(), int64(len(archive)))
}

func (d *disk) write(name string, archive []byte) error {
	f, err := os.CreateTemp(d.dir, partial+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(archive)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(d.dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// drop removes a useless archive.
func (d *disk) drop(key archiveKey) {
	if d == nil {
		return
	}
	d.files.Drop(key.file())
	d.remove(key.file())
}

// count records the use of a file, and removes files above the bound.
func (d *disk) count(name string, size int64) {
	for _, forgotten := range d.files.Put(name, struct{}{}, size) {
		d.remove(forgotten)
	}
}

func (d *disk) remove(name string) {
	if err := os.Remove(filepath.Join(d.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.complain("Could not remove a chart archive", err)
	}
}

func (d *disk) complain(message string, err error) {
	d.log.Info(message, "dir", d.dir, "reason", err.Error())
}
