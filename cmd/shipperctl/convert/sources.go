// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// standardInput is its name in messages.
const standardInput = "standard input"

// endings are those of the files that are read in folders, as kubectl has them.
var endings = []string{".json", ".yaml", ".yml"}

// inputs reads what --file names.
func (o *options) inputs(in io.Reader) ([]input, error) {
	var all []input
	left, stdin := int64(maxInput), false
	add := func(name string, from io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(from, left+1))
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if left -= int64(len(text)); left < 0 {
			return errTooLarge
		}
		all = append(all, input{file: name, text: text})
		return nil
	}
	for _, name := range o.files {
		if name == "-" {
			if !stdin { // it is read once
				if err := add(standardInput, in); err != nil {
					return nil, err
				}
			}
			stdin = true
			continue
		}
		paths, err := pathsOf(name, o.recursive)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			file, err := os.Open(path)
			if err != nil {
				return nil, fmt.Errorf("reading the input: %w", err)
			}
			err = add(path, file)
			file.Close()
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// pathsOf are the files that a name means: itself, those in the folder, or those that the pattern matches.
func pathsOf(name string, recursive bool) ([]string, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, fmt.Errorf("%s is a URL, and convert connects to no server: download it, and give the file", name)
	}
	names := []string{name}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		if found, err := filepath.Glob(name); err == nil && len(found) > 0 {
			names = found
		}
	}
	var all []string
	for _, name := range names {
		about, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
		if !about.IsDir() {
			all = append(all, name)
			continue
		}
		found, err := pathsIn(name, recursive)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// pathsIn are the files with manifests in a folder, in the order of their names. Not finding any is an error.
func pathsIn(folder string, recursive bool) ([]string, error) {
	var all []string
	root := folder + string(filepath.Separator) // also of a link to a folder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(endings, filepath.Ext(path)):
			all = append(all, path)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the folder %s: %w", folder, err)
	case len(all) == 0 && recursive:
		return nil, fmt.Errorf("the folder %s has no files whose names end with %s", folder, strings.Join(endings, ", "))
	case len(all) == 0:
		return nil, fmt.Errorf("the folder %s has no files whose names end with %s: --recursive reads the folders in it, too", folder,
			strings.Join(endings, ", "))
	}
	return all, nil
}
