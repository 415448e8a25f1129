using System.Collections;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>
/// Names and values that travel beside the messages of a call: a list that keeps its order and may hold a name more than
/// once. Names ending in <c>-bin</c> hold bytes. On the way, text values of one name may be joined with a comma, as HTTP allows;
/// binary values are taken apart again. Owned by whoever fills it; not thread-safe while it is filled.
/// </summary>
internal sealed class GrpcMetadata : IEnumerable<GrpcMetadataEntry>
{
    private const string BinarySuffix = "-bin";

    private readonly List<GrpcMetadataEntry> _entries;
    private readonly bool _frozen;

    public GrpcMetadata()
        : this([], frozen: false)
    {
    }

    private GrpcMetadata(List<GrpcMetadataEntry> entries, bool frozen)
    {
        _entries = entries;
        _frozen = frozen;
    }

    /// <summary>No entries, and none can be added.</summary>
    public static GrpcMetadata Empty { get; } = new([], frozen: true);

    /// <summary>Number of entries.</summary>
    public int Count => _entries.Count;

    /// <summary>Adds a text value: printable ASCII, as the protocol demands. The name is put in lower case.</summary>
    /// <exception cref="ArgumentException">The name or the value cannot be sent.</exception>
    public void Add(string name, string value)
    {
        name = CheckedName(name);
        if (name.EndsWith(BinarySuffix, StringComparison.Ordinal))
        {
            throw new ArgumentException($"The metadata name '{name}' ends with -bin and takes bytes, not text.", nameof(name));
        }

        foreach (char c in value)
        {
            if (c is < ' ' or > '~')
            {
                throw new ArgumentException($"The value of metadata '{name}' has the character U+{(int)c:X4}; text values are printable ASCII. Use a name ending in -bin for bytes.", nameof(value));
            }
        }

        Append(new GrpcMetadataEntry(name, value, null));
    }

    /// <summary>Adds a binary value under a name that ends with <c>-bin</c>.</summary>
    /// <exception cref="ArgumentException">The name cannot be sent or does not end with <c>-bin</c>.</exception>
    public void Add(string name, byte[] value)
    {
        name = CheckedName(name);
        if (!name.EndsWith(BinarySuffix, StringComparison.Ordinal))
        {
            throw new ArgumentException($"The metadata name '{name}' takes text; the name of a binary value ends with -bin.", nameof(name));
        }

        Append(new GrpcMetadataEntry(name, null, value));
    }

    /// <summary>The last text value of a name, or null.</summary>
    public string? GetText(string name) => FindLast(name)?.Text;

    /// <summary>The last binary value of a name, or null.</summary>
    public byte[]? GetBytes(string name) => FindLast(name)?.Bytes;

    /// <summary>All values of a name, in order.</summary>
    public IEnumerable<GrpcMetadataEntry> GetAll(string name) =>
        _entries.Where(entry => string.Equals(entry.Name, name, StringComparison.OrdinalIgnoreCase));

    /// <summary>Forgets all entries.</summary>
    public void Clear()
    {
        ThrowIfFrozen();
        _entries.Clear();
    }

    /// <inheritdoc/>
    public IEnumerator<GrpcMetadataEntry> GetEnumerator() => _entries.GetEnumerator();

    /// <inheritdoc/>
    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

    /// <summary>
    /// Adds a header as it was received. Fields that belong to HTTP or to the protocol itself are passed over; several
    /// binary values may have been joined with commas on the way.
    /// </summary>
    /// <exception cref="GrpcException">INTERNAL: a binary value is no base64.</exception>
    internal void AddReceived(string name, string value)
    {
        if (GrpcProtocol.IsReservedHeader(name))
        {
            return;
        }

        name = name.ToLowerInvariant();
        if (!name.EndsWith(BinarySuffix, StringComparison.Ordinal))
        {
            Append(new GrpcMetadataEntry(name, value, null));
            return;
        }

        foreach (string part in value.Split(',', StringSplitOptions.TrimEntries))
        {
            Append(new GrpcMetadataEntry(name, null, DecodeBase64(name, part)));
        }
    }

    private static byte[] DecodeBase64(string name, string text)
    {
        string padded = (text.Length & 3) switch
        {
            2 => text + "==",
            3 => text + "=",
            _ => text,
        };
        byte[] bytes = new byte[padded.Length / 4 * 3];
        return Convert.TryFromBase64String(padded, bytes, out int written)
            ? bytes.AsSpan(0, written).ToArray()
            : throw new GrpcException(GrpcStatusCode.Internal, $"The value of metadata '{name}' is not base64.");
    }

    private static string CheckedName(string name)
    {
        ArgumentException.ThrowIfNullOrEmpty(name);
        name = name.ToLowerInvariant();
        foreach (char c in name)
        {
            if (!char.IsAsciiLetterLower(c) && !char.IsAsciiDigit(c) && c is not ('-' or '_' or '.'))
            {
                throw new ArgumentException($"The metadata name '{name}' has the character '{c}'; names consist of letters, digits, '-', '_' and '.'.", nameof(name));
            }
        }

        return GrpcProtocol.IsReservedHeader(name)
            ? throw new ArgumentException($"The metadata name '{name}' belongs to the protocol.", nameof(name))
            : name;
    }

    private GrpcMetadataEntry? FindLast(string name)
    {
        for (int i = _entries.Count - 1; i >= 0; i--)
        {
            if (string.Equals(_entries[i].Name, name, StringComparison.OrdinalIgnoreCase))
            {
                return _entries[i];
            }
        }

        return null;
    }

    private void Append(GrpcMetadataEntry entry)
    {
        ThrowIfFrozen();
        _entries.Add(entry);
    }

    private void ThrowIfFrozen()
    {
        if (_frozen)
        {
            throw new InvalidOperationException("The empty metadata cannot be changed; make a new one.");
        }
    }
}
