#!/bin/sh
# Test certificates in FOLDER: NAME.pem with its key NAME.key.
#
#   tests/support/make_certificates.sh FOLDER
#
# ca                   signs those below but for the foreign ones
# server, server2      for localhost, 127.0.0.1 and ::1; server2 is its replacement
# soon, today          a server's that expires in five days, in twelve hours
# odd_curve            a server's, with a key on a curve that TLS does not have
# p521, ed25519        a server's, with a key that few clients take
# p384                 a server's, with a key that all take
# client               for a client that proves who it is
# expired, future      a server's, no longer and not yet valid
# expired_client       a client's, no longer valid
# wrong_use_client     a server's, which no client may show
# expired_ca           an authority, no longer valid
# future_ca            an authority, not yet valid
# foreign_ca           another authority, and foreign_client of it
set -eu
cd "$1"

cat > openssl.cnf <<'CNF'
[ca]
default_ca = here
[here]
dir = .
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
prompt = no
[name]
commonName = nobody
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
[server]
subjectAltName = DNS:localhost,IP:127.0.0.1,IP:::1
extendedKeyUsage = serverAuth
[client]
extendedKeyUsage = clientAuth
CNF

quietly() { "$@" 2> openssl.log || { cat openssl.log >&2; exit 1; }; }

# key NAME [CURVE or ed25519]
key() {
  if [ "${2-}" = ed25519 ]; then
    quietly openssl genpkey -algorithm ed25519 -out "$1.key"
    return
  fi
  quietly openssl ecparam -name "${2:-prime256v1}" -genkey -noout -out "$1.key"
}

# authority NAME
authority() {
  key "$1"
  quietly openssl req -config openssl.cnf -x509 -new -key "$1.key" -subj "/CN=$1" -days 3650 \
    -extensions authority -out "$1.pem"
}

# dated_authority NAME FROM TO: valid from and to, as YYYYMMDDHHMMSSZ
dated_authority() {
  key "$1"
  quietly openssl req -config openssl.cnf -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
  : > index.txt
  quietly openssl ca -config openssl.cnf -batch -notext -selfsign -keyfile "$1.key" -in "$1.csr" \
    -startdate "$2" -enddate "$3" -extensions authority -out "$1.pem"
}

# leaf NAME USE FROM TO [AUTHORITY [CURVE]]: valid from and to, as
# YYYYMMDDHHMMSSZ
leaf() {
  key "$1" "${6:-prime256v1}"
  quietly openssl req -config openssl.cnf -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
  : > index.txt
  quietly openssl ca -config openssl.cnf -batch -notext -cert "${5:-ca}.pem" -keyfile "${5:-ca}.key" \
    -in "$1.csr" -startdate "$3" -enddate "$4" -extensions "$2" -out "$1.pem"
}

past=20000101000000Z
yesterday=20200101000000Z
later=20990101000000Z
future=20980101000000Z
authority ca
authority foreign_ca
dated_authority expired_ca "$past" "$yesterday"
dated_authority future_ca "$future" "$later"
leaf server server "$past" "$later"
leaf server2 server "$past" "$later"
leaf client client "$past" "$later"
leaf soon server "$past" "$(date -u -d '+5 days' +%Y%m%d%H%M%SZ)"
leaf today server "$past" "$(date -u -d '+12 hours' +%Y%m%d%H%M%SZ)"
leaf odd_curve server "$past" "$later" ca secp256k1
leaf p384 server "$past" "$later" ca secp384r1
leaf p521 server "$past" "$later" ca secp521r1
leaf ed25519 server "$past" "$later" ca ed25519
leaf expired server "$past" "$yesterday"
leaf future server "$future" "$later"
leaf expired_client client "$past" "$yesterday"
leaf wrong_use_client server "$past" "$later"
leaf foreign_client client "$past" "$later" foreign_ca
rm -f ./*.csr ./[0-9A-F]*.pem index.txt* openssl.cnf openssl.log
