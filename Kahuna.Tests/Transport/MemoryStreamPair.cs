namespace Kahuna.Tests.Transport;

/// <summary>A stream whose input is fixed and whose output is ignored. Owned by one test.</summary>
internal sealed class MemoryStreamPair(ReadOnlySpan<byte> said) : MemoryStream(said.ToArray(), writable: false)
{
    public override bool CanWrite => true;

    public override void Write(byte[] buffer, int offset, int count)
    {
    }

    public override void Write(ReadOnlySpan<byte> buffer)
    {
    }
}
