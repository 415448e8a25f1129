using OpenTelemetry.Exporter;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>
/// The receiver of the OpenTelemetry protocol to which a node sends. What it does not say is as the variables of
/// OpenTelemetry say. Immutable; any thread.
/// </summary>
/// <param name="Address">The base address; null: as the variables say.</param>
internal sealed record OtlpTarget(Uri? Address)
{
    /// <summary>Changes the options of the exporter, as variables would.</summary>
    public Action<OtlpExporterOptions>? Adjust { get; init; }

    /// <summary>Milliseconds from one export of the metrics to the next; null: as the variables say.</summary>
    public int? PauseMs { get; init; }

    /// <summary>The clock for what is told once a minute.</summary>
    public TimeProvider Time { get; init; } = TimeProvider.System;

    /// <summary>Sets the options of an exporter.</summary>
    /// <param name="options">The options.</param>
    /// <param name="path">
    /// The path of the signal. Over HTTP it is appended to the base address, as to OTEL_EXPORTER_OTLP_ENDPOINT
    /// (OpenTelemetry specification, protocol exporter). gRPC has paths of its own.
    /// </param>
    public void Apply(OtlpExporterOptions options, string path)
    {
        Adjust?.Invoke(options);
        if (Address is not null)
        {
            options.Endpoint = options.Protocol == OtlpExportProtocol.HttpProtobuf
                ? new UriBuilder(Address) { Path = $"{Address.AbsolutePath.TrimEnd('/')}/{path}" }.Uri
                : Address;
        }
    }
}
