// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v3/pkg/provenance"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// MaxProvenanceBytes bounds a .prov file. It contains the chart's metadata, and a signature.
const MaxProvenanceBytes = 64 << 10

// startSigned is the first line of a .prov file.
const startSigned = "-----BEGIN PGP SIGNED MESSAGE-----"

// Archive is the statement of a .prov file: an archive of this name has this sha256.
type Archive struct {
	Name, Digest string
}

// ArchiveName is the name that `helm package` gives the archive of a version.
func ArchiveName(name, version string) string { return name + "-" + version + ".tgz" }

// Provenance returns the signer of a .prov file that states want. It requires what `helm verify` requires and also that
// the file contains only that message, because no user looks at it. It does not use Helm's Verify, which reads files and the
// system clock. Errors are phrases that follow the name of the .prov.
func Provenance(prov []byte, keys openpgp.EntityList, want Archive, now time.Time) (*openpgp.Entity, error) {
	message, err := chart.Guard(func() (*clearsign.Block, error) { return onlyMessage(prov) })
	if err != nil {
		return nil, err
	}
	signature, err := chart.Guard(func() ([]byte, error) { return io.ReadAll(message.ArmoredSignature.Body) })
	if err != nil {
		return nil, errors.New("has a signature that is not whole")
	}
	config := &packet.Config{Time: func() time.Time { return now }}
	var by *openpgp.Entity
	var read *packet.Signature
	var wrong error
	_, err = chart.Guard(func() (_ any, _ error) {
		read, by, wrong = openpgp.VerifyDetachedSignature(keys, bytes.NewReader(message.Bytes), bytes.NewReader(signature), config)
		return
	})
	if err := errors.Join(err, wrong); err != nil {
		return nil, whyNotSigned(err, signature, by)
	}
	if config.RejectMessageHashAlgorithm(read.Hash) {
		return nil, fmt.Errorf("has a signature of %s, which can be forged: sign it again with SHA-256 or better", read.Hash)
	}
	return by, want.saidBy(message.Plaintext)
}

// onlyMessage parses a .prov file. Text around the signed message is refused, because it is not signed.
func onlyMessage(prov []byte) (*clearsign.Block, error) {
	prov = bytes.TrimSpace(prov)
	if !bytes.HasPrefix(prov, []byte(startSigned)) {
		return nil, errors.New("is not a .prov file, as `helm package --sign` writes it")
	}
	message, rest := clearsign.Decode(prov)
	switch {
	case message == nil:
		return nil, errors.New("is not a whole .prov file")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("has more in it than one signed message")
	}
	return message, nil
}

// whyNotSigned is the error for an invalid signature.
func whyNotSigned(err error, signature []byte, by *openpgp.Entity) error {
	whose := ""
	if by != nil {
		whose = " " + Fingerprint(by)
	}
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return fmt.Errorf("is signed by the key %s, which is not among the keys", issuerOf(signature))
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return fmt.Errorf("is signed by the key%s, which has expired", whose)
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return fmt.Errorf("is signed by the key%s, which was revoked", whose)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return fmt.Errorf("has a signature of the key%s that has expired", whose)
	}
	if _, other := errors.AsType[pgperrors.SignatureError](err); other {
		return errors.New("has a signature of something else: it was changed since it was signed")
	}
	return fmt.Errorf("has a signature that cannot be used: %s", chart.Shorten(err.Error()))
}

// issuerOf is the ID of the key that a signature names.
func issuerOf(signature []byte) string {
	id, err := chart.Guard(func() (string, error) {
		first, err := packet.Read(bytes.NewReader(signature))
		if s, ok := first.(*packet.Signature); ok && err == nil && s.IssuerKeyId != nil {
			return fmt.Sprintf("%016X", *s.IssuerKeyId), nil
		}
		return "of no name", err
	})
	if err != nil {
		return "of no name"
	}
	return id
}

// saidBy compares the archive with the signed message: its chart's metadata, and the sums of files.
func (s Archive) saidBy(message []byte) error {
	parts := bytes.Split(message, []byte("\n...\n"))
	if len(parts) != 2 {
		return errors.New("does not have the two parts of a .prov file")
	}
	sums, err := chart.Guard(func() (*provenance.SumCollection, error) {
		var out provenance.SumCollection
		return &out, yaml.Unmarshal(parts[1], &out)
	})
	if err != nil {
		return errors.New("has sums that cannot be read")
	}
	switch sum, ok := sums.Files[s.Name]; {
	case !ok && len(sums.Files) == 1:
		for other := range sums.Files {
			return fmt.Errorf("is that of %s, not of %s", chart.Shorten(other), s.Name)
		}
	case !ok:
		return fmt.Errorf("says nothing of %s", s.Name)
	case sum != "sha256:"+s.Digest:
		return fmt.Errorf("says that %s has the sum %s, but the archive that is pinned has sha256:%s", s.Name, chart.Shorten(sum), s.Digest)
	}
	return nil
}

// SignatureOf is the record of a key's signature of an archive. If the library cannot choose among the names of a key, for
// example one that was revoked and never certified, the record has none.
func SignatureOf(by *openpgp.Entity, digest string) shipper.ChartSignature {
	out := shipper.ChartSignature{Digest: digest, Fingerprint: Fingerprint(by)}
	identity, err := chart.Guard(func() (*openpgp.Identity, error) { return by.PrimaryIdentity(), nil })
	if err == nil && identity != nil {
		out.Identity = chart.Shorten(strings.ToValidUTF8(identity.Name, "?"))
	}
	return out
}

// Fingerprint is the fingerprint of a key in upper-case hex, as gpg prints it.
func Fingerprint(key *openpgp.Entity) string { return fmt.Sprintf("%X", key.PrimaryKey.Fingerprint) }
