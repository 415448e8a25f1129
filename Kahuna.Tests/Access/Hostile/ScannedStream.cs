namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// What comes out of TLS at a hostile client, and a look at every byte of it. One reader and one writer; owned by one
/// connection.
/// </summary>
internal sealed class ScannedStream(Stream inner, SecretMarker marker, HostileTally tally) : Stream
{
    private byte[] _tail = [];

    public override bool CanRead => true;

    public override bool CanSeek => false;

    public override bool CanWrite => true;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        int count = await inner.ReadAsync(buffer, cancellationToken);
        Scan(buffer.Span[..count]);
        return count;
    }

    public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
        ReadAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();

    public override int Read(byte[] buffer, int offset, int count)
    {
        int read = inner.Read(buffer, offset, count);
        Scan(buffer.AsSpan(offset, read));
        return read;
    }

    public override ValueTask WriteAsync(
        ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default) =>
        inner.WriteAsync(buffer, cancellationToken);

    public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken) =>
        inner.WriteAsync(buffer, offset, count, cancellationToken);

    public override void Write(byte[] buffer, int offset, int count) => inner.Write(buffer, offset, count);

    public override void Flush() => inner.Flush();

    public override Task FlushAsync(CancellationToken cancellationToken) => inner.FlushAsync(cancellationToken);

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    protected override void Dispose(bool disposing)
    {
        if (disposing)
        {
            inner.Dispose();
        }
    }

    /// <summary>Also where the marker begins in one piece and ends in the next.</summary>
    private void Scan(ReadOnlySpan<byte> piece)
    {
        tally.AddReceived(piece.Length);
        byte[] bytes = [.. _tail, .. piece];
        if (marker.IsIn(bytes))
        {
            tally.Reveal("a byte stream");
            _tail = [];
            return;
        }

        _tail = bytes[Math.Max(0, bytes.Length - marker.LengthMax + 1)..];
    }
}
