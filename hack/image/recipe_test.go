// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const stage = "FROM golang AS build\nRUN go mod download\nRUN GOOS=$TARGETOS GOARCH=$TARGETARCH hack/binaries.sh /out one two\n"

func TestADockerfileIsFollowed(t *testing.T) {
	got, err := read(strings.NewReader(stage+`FROM scratch
ARG VERSION
ARG BY=nobody
LABEL a="one two" b="$VERSION by $BY"
COPY --from=build /out/one /out/two /bin/
COPY --from=build /etc/x /etc/y
USER 1:2
`), map[string]string{"VERSION": "v3"})
	if err != nil {
		t.Fatal(err)
	}
	want := &recipe{
		script: "hack/binaries.sh", built: "/out", names: []string{"one", "two"}, user: "1:2",
		labels: map[string]string{"a": "one two", "b": "v3 by nobody"},
		copies: []step{
			{files: []file{{"/out/one", "/bin/one"}, {"/out/two", "/bin/two"}}, source: "COPY --from=build /out/one /out/two /bin/"},
			{files: []file{{"/etc/x", "/etc/y"}}, source: "COPY --from=build /etc/x /etc/y"},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(recipe{}, step{}, file{})); diff != "" {
		t.Errorf("recipe (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for sentence, text := range map[string]string{
		"no Dockerfile":                   "hello",
		"one stage":                       stage,
		"a base image":                    stage + "FROM static\n",
		"another name of the first stage": "FROM golang AS first\nRUN true\nFROM scratch\n",
		"a build that is not the script":  "FROM golang AS build\nRUN go build ./...\nFROM scratch\n",
		"a build that runs nothing":       "FROM golang AS build\nFROM scratch\n",
		"an entrypoint":                   stage + "FROM scratch\nENTRYPOINT [\"/one\"]\n",
		"something that is run":           stage + "FROM scratch\nRUN chmod 700 /one\n",
		"an environment":                  stage + "FROM scratch\nENV A=b\n",
		"another owner":                   stage + "FROM scratch\nCOPY --from=build --chown=1 /out/one /\n",
		"another mode":                    stage + "FROM scratch\nCOPY --from=build --chmod=777 /out/one /\n",
		"files of the tree":               stage + "FROM scratch\nCOPY LICENSE /\n",
	} {
		if r, err := read(strings.NewReader(text), nil); err == nil {
			t.Errorf("%s: %+v", sentence, r)
		}
	}
}
