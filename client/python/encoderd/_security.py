"""TLS and the token: what a client's options and the environment ask for.

An option that is not given (None) is read from its variable: ca_file from
ENCODERD_CA_FILE, and so on. An empty variable is none; an option that is ""
is none, too, whatever the environment says. Everything is checked here,
before anything is dialled; what is wrong is a ValueError that names the
option, or the variable, and never the token.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, List, Optional, Tuple, Union

import grpc

from encoderd._channel import Metadata
from encoderd._option_checks import a_kind
from encoderd._secret_files import (check_pair, check_token, read_authorities,
                                    read_certificate, read_key, read_token,
                                    system_authorities)
from encoderd._setting import Setting, read_bool, read_setting
from encoderd._target import is_loopback

Path = Union[str, "os.PathLike[str]"]
Option = Tuple[str, Any]


@dataclasses.dataclass(frozen=True)
class Security:
    """What a channel is made with, and what each of its calls carries.

    credentials: None: no encryption.
    """

    credentials: Optional[grpc.ChannelCredentials]
    options: List[Option]
    metadata: Metadata = dataclasses.field(repr=False)


def secure(target: str, *, credentials: Optional[grpc.ChannelCredentials],
           tls: Optional[bool], ca_file: Optional[Path],
           certificate_file: Optional[Path], key_file: Optional[Path],
           token: Optional[str], token_file: Optional[Path],
           server_name: Optional[str]) -> Security:
    """The options are those of Client."""
    files = [read_setting("ca_file", ca_file),
             read_setting("certificate_file", certificate_file),
             read_setting("key_file", key_file)]
    own = credentials is not None
    if own:
        _refuse_beside_credentials(tls, files)
    elif _wants_tls(tls, files):
        credentials = _tls_credentials(*files)
    name = read_setting("server_name", server_name)
    options: List[Option] = []
    if name and credentials is not None:
        options.append(("grpc.ssl_target_name_override", name.value))
    elif name and name.is_option:
        raise ValueError(f"server_name is {name.value!r}, but only applies "
                         "with TLS; set tls=True or ca_file")
    if own and (token is not None or token_file is not None):
        raise ValueError("credentials and a token are both given; put the "
                         "token into the credentials "
                         "(grpc.composite_channel_credentials)")
    found = _token(token, token_file, use_environment=not own)
    if not found:
        return Security(credentials, options, ())
    if credentials is None:
        if not is_loopback(target):
            raise ValueError(
                f"{found.name} would be sent unencrypted to {target}; use TLS "
                "(tls or ca_file)")
    return Security(credentials, options,
                    (("authorization", f"Bearer {found.value}"),))


def _refuse_beside_credentials(tls: Optional[bool], files: List[Setting]
                               ) -> None:
    if tls is False:
        raise ValueError("tls is False, but credentials are given; drop one "
                         "of them")
    for setting in files:
        if setting and setting.is_option:
            raise ValueError(f"{setting.name} and credentials are both given; "
                             "credentials hold the certificates already")


def _wants_tls(tls: Optional[bool], files: List[Setting]) -> bool:
    """An option wins over every variable."""
    if tls is not None and not isinstance(tls, bool):
        raise TypeError(f"tls is {a_kind(tls)}; expected True, False or None")
    given = [setting.name for setting in files
             if setting and setting.is_option]
    if tls is False and given:
        raise ValueError(f"tls is False, but {given[0]} is for TLS alone; "
                         "drop one of them")
    if tls is not None or given:
        return bool(tls or given)
    wanted = read_bool("ENCODERD_TLS")
    return any(files) if wanted is None else wanted


def _tls_credentials(ca_file: Setting, certificate_file: Setting,
                     key_file: Setting) -> grpc.ChannelCredentials:
    for one, other, option in ((certificate_file, key_file, "key_file"),
                               (key_file, certificate_file,
                                "certificate_file")):
        if one and not other:
            missing = option if one.is_option else other.name
            raise ValueError(f"{one.name} {one.value} is given without "
                             f"{missing}; a client shows both or none")
    roots = read_authorities(ca_file) if ca_file else system_authorities()
    chain = key = None
    if certificate_file:
        chain, key = read_certificate(certificate_file), read_key(key_file)
        check_pair(certificate_file, key_file)
    return grpc.ssl_channel_credentials(roots, key, chain)


def _token(token: Optional[str], token_file: Optional[Path],
           use_environment: bool) -> Setting:
    """What to send, under the name of what it came from."""
    if token is not None and not isinstance(token, str):
        raise TypeError(f"token is {a_kind(token)}; expected a str")
    if token == "":
        raise ValueError("token is empty; pass a token, or leave it out")
    if token is not None or token_file is not None:
        use_environment = False
    text = read_setting("token", token, use_environment)
    file = read_setting("token_file", token_file, use_environment)
    if text and file:
        raise ValueError(f"both {text.name} and {file.name} are set; use one")
    if file:
        return Setting(file.name, read_token(file), file.is_option)
    if text:
        check_token(text.name, text.value)
    return text
