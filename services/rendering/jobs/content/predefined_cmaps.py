"""The predefined CMaps of ISO 32000-2, table 116, as far as placing text needs them: how long a code is, and the CIDs of
ASCII (whose widths differ from the ideographs' default)."""

from collections.abc import Callable
from typing import NamedTuple


class PredefinedCMap(NamedTuple):
    """``first`` is the CID of the blank (U+0020), and the other ASCII characters follow it; ``blank``: its CID where it stands
    elsewhere."""

    length: Callable[[int], int]
    first: int
    blank: int | None = None

    def cid(self, code: int) -> int:
        """-1 (the default width) for everything beyond ASCII."""
        if code == 0x20 and self.blank is not None:
            return self.blank
        return self.first + code - 0x20 if 0x20 <= code <= 0x7E else -1


def _two(_lead: int) -> int:
    return 2


def _shift_jis(lead: int) -> int:
    return 2 if 0x81 <= lead <= 0x9F or 0xE0 <= lead <= 0xFC else 1


def _high_bit(lead: int) -> int:
    return 2 if lead >= 0x81 else 1


def _mac_big5(lead: int) -> int:
    return 2 if 0xA1 <= lead <= 0xFC else 1


def _mac_euc(lead: int) -> int:
    return 2 if 0xA1 <= lead <= 0xFE else 1


def _cns_euc(lead: int) -> int:
    return 4 if lead == 0x8E else _mac_euc(lead)


def _japanese_euc(lead: int) -> int:
    return 2 if lead == 0x8E or lead >= 0xA1 else 1


PREDEFINED = {
    "/GB-EUC-H": PredefinedCMap(_mac_euc, 813, 7716),
    "/GBpc-EUC-H": PredefinedCMap(_mac_euc, 1),
    "/GBK-EUC-H": PredefinedCMap(_high_bit, 813, 7716),
    "/GBKp-EUC-H": PredefinedCMap(_high_bit, 1),
    "/UniGB-UCS2-H": PredefinedCMap(_two, 1),
    "/UniGB-UTF16-H": PredefinedCMap(_two, 1),
    "/B5pc-H": PredefinedCMap(_mac_big5, 1),
    "/HKscs-B5-H": PredefinedCMap(_high_bit, 1),
    "/ETen-B5-H": PredefinedCMap(_high_bit, 13648),
    "/ETenms-B5-H": PredefinedCMap(_high_bit, 1),
    "/CNS-EUC-H": PredefinedCMap(_cns_euc, 1),
    "/UniCNS-UCS2-H": PredefinedCMap(_two, 1),
    "/UniCNS-UTF16-H": PredefinedCMap(_two, 1),
    "/83pv-RKSJ-H": PredefinedCMap(_shift_jis, 1),
    "/90ms-RKSJ-H": PredefinedCMap(_shift_jis, 231),
    "/90msp-RKSJ-H": PredefinedCMap(_shift_jis, 1),
    "/90pv-RKSJ-H": PredefinedCMap(_shift_jis, 1),
    "/Add-RKSJ-H": PredefinedCMap(_shift_jis, 231),
    "/Ext-RKSJ-H": PredefinedCMap(_shift_jis, 231),
    "/EUC-H": PredefinedCMap(_japanese_euc, 231),
    "/H": PredefinedCMap(_two, 633),
    "/UniJIS-UCS2-H": PredefinedCMap(_two, 1),
    "/UniJIS-UCS2-HW-H": PredefinedCMap(_two, 231),
    "/UniJIS-UTF16-H": PredefinedCMap(_two, 1),
    "/KSC-EUC-H": PredefinedCMap(_mac_euc, 8094),
    "/KSCms-UHC-H": PredefinedCMap(_high_bit, 1),
    "/KSCms-UHC-HW-H": PredefinedCMap(_high_bit, 8094),
    "/KSCpc-EUC-H": PredefinedCMap(_mac_big5, 1),
    "/UniKS-UCS2-H": PredefinedCMap(_two, 1),
    "/UniKS-UTF16-H": PredefinedCMap(_two, 1),
}
