"""What Perl's Mail::DKIM, which Debian's SpamAssassin and amavis use, says of the signatures in a mail; the DNS is a table."""

import json
import subprocess
from collections.abc import Mapping

_PROGRAM = r"""
use strict; use warnings;
use JSON::PP; use Net::DNS; use Mail::DKIM::Verifier;
my $records = decode_json($ARGV[0]);
no warnings "redefine";
*Mail::DKIM::DNS::query = sub {
    my ($name, $type) = @_;
    my $text = $records->{$name} or return;
    # A character string of the DNS has at most 255 characters.
    return Net::DNS::RR->new(name => $name, type => "TXT", txtdata => [unpack("(A255)*", $text)]);
};
*Mail::DKIM::DNS::query_async = sub {
    my ($name, $type, %with) = @_;
    my @found = Mail::DKIM::DNS::query($name, $type);
    my $callbacks = $with{Callbacks} || {};
    @found = $callbacks->{Success}->(@found) if $callbacks->{Success};
    return sub { return @found };
};
my $verifier = Mail::DKIM::Verifier->new();
binmode(STDIN);
{ local $/; my $mail = <STDIN>; $verifier->PRINT($mail); }
$verifier->CLOSE;
print encode_json([map { {
    selector => $_->selector, domain => $_->domain, algorithm => $_->algorithm, result => $_->result, detail => $_->result_detail
} } $verifier->signatures]);
"""


def verdicts(message: bytes, records: Mapping[str, str]) -> list[dict[str, str]]:
    """``selector``, ``domain``, ``algorithm``, ``result`` and ``detail`` of each signature. ``records``: TXT by name."""
    command = ["perl", "-e", _PROGRAM, json.dumps(records)]
    done = subprocess.run(command, input=message, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found
