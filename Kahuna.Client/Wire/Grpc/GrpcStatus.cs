namespace Kahuna.Client.Wire.Grpc;

/// <summary>How a call ended: a code, and a sentence for people. A value; any thread.</summary>
/// <param name="Code">The code of the protocol.</param>
/// <param name="Message">Why; empty when the code says it all.</param>
internal readonly record struct GrpcStatus(GrpcStatusCode Code, string Message)
{
    /// <summary>The call succeeded.</summary>
    public static GrpcStatus Success { get; } = new(GrpcStatusCode.OK, "");

    /// <summary>The call succeeded.</summary>
    public bool IsOK => Code == GrpcStatusCode.OK;

    /// <inheritdoc/>
    public override string ToString() => Message.Length == 0 ? Code.ToString() : $"{Code}: {Message}";
}
