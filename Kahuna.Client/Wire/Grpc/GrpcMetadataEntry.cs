namespace Kahuna.Client.Wire.Grpc;

/// <summary>One name and value of a <see cref="GrpcMetadata"/>. A value; any thread.</summary>
/// <param name="Name">Lower case; ends with <c>-bin</c> when the value is binary.</param>
/// <param name="Text">The value as text, or null when it is binary.</param>
/// <param name="Bytes">The value as bytes, or null when it is text.</param>
internal readonly record struct GrpcMetadataEntry(string Name, string? Text, byte[]? Bytes)
{
    /// <summary>The value as it stands in a header: text as it is, bytes in base64 without padding.</summary>
    public string HeaderValue => Text ?? Convert.ToBase64String(Bytes!).TrimEnd('=');
}
