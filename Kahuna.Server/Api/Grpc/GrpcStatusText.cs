using System.Globalization;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Server.Api.Grpc;

/// <summary>Status codes as header values, made once. Any thread.</summary>
internal static class GrpcStatusText
{
    private static readonly string[] s_texts = [.. Enum.GetValues<GrpcStatusCode>().Select(code => ((int)code).ToString(CultureInfo.InvariantCulture))];

    public static string Of(GrpcStatusCode code) => s_texts[(int)code];
}
