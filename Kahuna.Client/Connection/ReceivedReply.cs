namespace Kahuna.Client.Connection;

/// <summary>One reply of a received frame on its way to its operation. A value inside the reader's array.</summary>
internal struct ReceivedReply
{
    public OperationRef Reference;
    public uint Number;
    public int Offset;
    public int Length;

    /// <summary>The operation did not happen and may be sent again.</summary>
    public bool IsRefusal;
}
