namespace Kahuna.Client.Connection;

/// <summary>One reply of a received frame on its way to its operation. A value inside the reader's array.</summary>
internal struct ReceivedReply
{
    public OperationRef Reference;
    public uint Number;
    public int Offset;
    public int Length;

    /// <summary>The operation is sent again: this attempt did not happen, or its number makes a second one harmless.</summary>
    public bool IsRefusal;

    /// <summary>Whether this attempt was carried out is not known.</summary>
    public bool IsUnknown;
}
