"""Certificates, keys and tokens in files: read and checked.

What is wrong is a ValueError that names the option, the path and the fault.
"""

from __future__ import annotations

import os
import re
import ssl
from typing import List, Optional

from encoderd._setting import Setting

_CERTIFICATE = re.compile(rb"-----BEGIN (?:X509 )?CERTIFICATE-----")
_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")
_ENCRYPTED = re.compile(rb"-----BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED")
_TOKEN = re.compile(r"[!-~]+")  # visible ASCII
_LONGEST_TOKEN = 4096  # bytes: what the server takes
_LARGEST_FILE = 4 << 20
# Where systems keep them: Debian and Alpine, Fedora, SUSE, BSD and macOS.
_SYSTEM = ["/etc/ssl/certs/ca-certificates.crt",
           "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
           "/etc/ssl/cert.pem"]


def _error(setting: Setting, fault: str) -> ValueError:
    return ValueError(f"{setting.name} {setting.value} {fault}")


def _read(setting: Setting, line: bool = False) -> bytes:
    """All of the file, or its first line; of at most _LARGEST_FILE."""
    try:
        with open(setting.value, "rb") as file:
            read = file.readline if line else file.read
            found = read(_LARGEST_FILE + 1)
    except OSError as error:
        raise _error(setting, f"cannot be read: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise _error(setting, f"is not a path: {error}") from None
    if len(found) > _LARGEST_FILE:
        raise _error(setting, f"has more than {_LARGEST_FILE} bytes")
    return found


def _read_pem(setting: Setting, block: "re.Pattern[bytes]", what: str
              ) -> bytes:
    found = _read(setting)
    if not block.search(found):
        raise _error(setting, f"holds no {what} in PEM")
    return found


def read_authorities(setting: Setting) -> bytes:
    """The certificates of those that may vouch for a server."""
    found = _read_pem(setting, _CERTIFICATE, "certificate")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
            cadata=found.decode("ascii", "ignore"))  # comments are dropped
    except ssl.SSLError as error:
        raise _error(setting, "holds a damaged certificate: "
                     f"{error.reason or error}") from None
    return found


def read_certificate(setting: Setting) -> bytes:
    """The client's own, and those between it and an authority."""
    return _read_pem(setting, _CERTIFICATE, "certificate")


def read_key(setting: Setting) -> bytes:
    found = _read_pem(setting, _KEY, "private key")
    if _ENCRYPTED.search(found):
        raise _error(setting, "is encrypted; a key without a passphrase is "
                     "needed")
    return found


def check_pair(certificate: Setting, key: Setting) -> None:
    """The key must be that of the certificate, and both must be readable."""
    if not (os.path.isfile(certificate.value) and os.path.isfile(key.value)):
        return  # pipes, which were read already
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(
            certificate.value, key.value, password="")
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        if reason == "KEY_VALUES_MISMATCH":
            raise _error(key, f"is not the key of {certificate.name} "
                         f"{certificate.value}") from None
        # How strong a key must be is not for this client to say.
        if not reason.endswith(("_TOO_SMALL", "_TOO_WEAK")):
            raise _error(key, f"and {certificate.name} {certificate.value} "
                         f"are no usable pair: {reason}") from None


def check_token(name: str, token: str) -> None:
    """name: where it came from. The error has nothing of the token."""
    if not token:
        raise ValueError(f"{name} holds no token: its first line is empty")
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"{name} has characters that no header can carry; a "
                         "token is visible ASCII without blanks")
    if len(token) > _LONGEST_TOKEN:
        raise ValueError(f"{name} has {len(token)} bytes; a token has at most "
                         f"{_LONGEST_TOKEN}")


def read_token(setting: Setting) -> str:
    """A file's first line, without the blanks at its ends."""
    token = _read(setting, line=True).decode("ascii", "replace").strip()
    check_token(f"{setting.name} {setting.value}", token)
    return token


def system_authorities() -> Optional[bytes]:
    """Those that the system trusts; SSL_CERT_FILE names others. None: those
    that come with gRPC, or that its own variable names."""
    if os.environ.get("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"):
        return None
    own = ssl.get_default_verify_paths().cafile
    places: List[str] = ([own] if own else []) + _SYSTEM
    for place in places:
        try:
            with open(place, "rb") as file:
                found = file.read()
        except OSError:
            continue
        if _CERTIFICATE.search(found):
            return found
    return None
