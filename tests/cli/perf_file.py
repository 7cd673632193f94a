"""A perf.data file in parts, to be put together otherwise: events, records, features."""
import struct

ATTRS, DATA, FEATURES = 24, 40, 72
SAMPLE, KERNEL_TYPES, FINISHED_ROUND, ID_INDEX, AUXTRACE = 9, 64, 68, 69, 71
TRACING_DATA, CMDLINE, EVENT_DESC, INDEX, DIR_FORMAT = 1, 11, 12, 18, 24


class PerfFile:
    """`events` are pairs of attr and ids, `records` pairs of type and bytes, `features` sections by number."""

    def __init__(self, path):
        data = path.read_bytes()
        start, size = struct.unpack_from("<QQ", data, DATA)
        self.head = data[:16]
        self.events = list(self._events(data))
        self.records = list(self._records(data, start, start + size))
        self.features = dict(self._features(data, start + size))

    @staticmethod
    def _events(data):
        entry_size, at, size = struct.unpack_from("<QQQ", data, 16)
        for entry in range(at, at + size, entry_size):
            ids, length = struct.unpack_from("<QQ", data, entry + entry_size - 16)
            yield data[entry:entry + entry_size - 16], struct.unpack_from(f"<{length // 8}Q", data, ids)

    @staticmethod
    def _records(data, at, end):
        while at < end:
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if kind == AUXTRACE:
                size += struct.unpack_from("<Q", data, at + 8)[0]
            yield kind, data[at:at + size]
            at += size

    @staticmethod
    def _features(data, at):
        bits = int.from_bytes(data[FEATURES:FEATURES + 32], "little")
        for bit in range(256):
            if bits >> bit & 1:
                offset, size = struct.unpack_from("<QQ", data, at)
                # perf finds trace by the index, where it was before: without one it takes it as it comes
                yield bit, bytes(8) if bit == INDEX else data[offset:offset + size]
                at += 16

    def describe(self, attr, event_id, name):
        """Add an event with one id, and its name."""
        self.events.append((attr, (event_id,)))
        count, size = struct.unpack_from("<II", self.features[EVENT_DESC])
        padded = name.encode().ljust(len(name) // 64 * 64 + 64, b"\0")
        self.features[EVENT_DESC] = (struct.pack("<II", count + 1, size) + self.features[EVENT_DESC][8:]
                                     + attr.ljust(size, b"\0")[:size] + struct.pack("<II", 1, len(padded)) + padded
                                     + struct.pack("<Q", event_id))

    def write(self, path):
        entry_size = len(self.events[0][0]) + 16
        ids_at, ids, attrs = 104, b"", b""
        for attr, own in self.events:
            attrs += attr + struct.pack("<QQ", ids_at + len(ids), 8 * len(own))
            ids += struct.pack(f"<{len(own)}Q", *own)
        start = ids_at + len(ids) + len(attrs)
        body = b"".join(record for _, record in self.records)
        table, payloads, at = b"", b"", start + len(body) + 16 * len(self.features)
        for bit in sorted(self.features):
            table += struct.pack("<QQ", at + len(payloads), len(self.features[bit]))
            payloads += self.features[bit]
        head = self.head + struct.pack("<QQQQQQQ", entry_size, ids_at + len(ids), len(attrs), start, len(body), 0, 0)
        bits = sum(1 << bit for bit in self.features).to_bytes(32, "little")
        path.write_bytes(head + bits + ids + attrs + body + table + payloads)
