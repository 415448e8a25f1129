namespace Kahuna.Server.Hosting.Options;

/// <summary>Parses the options about metrics. Used once by one thread.</summary>
/// <param name="values">The given options.</param>
/// <param name="errors">Receives the errors.</param>
internal sealed class MetricsOptionsReader(
    IReadOnlyDictionary<OptionSetting, GivenValue> values, List<string> errors)
{
    /// <summary>OpenTelemetry's own names of a receiver.</summary>
    private static readonly string[] s_variables =
    [
        "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    ];

    /// <summary>The options; valid only without errors.</summary>
    public MetricsOptions Read()
    {
        bool isOn = ReadSwitch();
        MetricsOptions options = new()
        {
            IsOn = isOn,
            OtlpEndpoint = ReadEndpoint(),
            IsReceiverInEnvironment = s_variables.Any(static name =>
                !string.IsNullOrEmpty(Environment.GetEnvironmentVariable(name))),
        };
        foreach (OptionSetting setting in (OptionSetting[])[OptionSetting.MetricsTokenFile, OptionSetting.OtlpEndpoint])
        {
            if (!isOn && values.TryGetValue(setting, out GivenValue value))
            {
                errors.Add($"{value.Origin} needs '{OptionSetting.Metrics.Flag} on'.");
            }
        }

        return options;
    }

    private bool ReadSwitch()
    {
        if (!values.TryGetValue(OptionSetting.Metrics, out GivenValue value))
        {
            return true;
        }

        switch (value.Text.ToUpperInvariant())
        {
            case "ON":
                return true;
            case "OFF":
                return false;
            default:
                errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not one of on, off.");
                return true;
        }
    }

    private Uri? ReadEndpoint()
    {
        if (!values.TryGetValue(OptionSetting.OtlpEndpoint, out GivenValue value))
        {
            return null;
        }

        if (Uri.TryCreate(value.Text, UriKind.Absolute, out Uri? address)
            && (address.Scheme == Uri.UriSchemeHttp || address.Scheme == Uri.UriSchemeHttps)
            && address.UserInfo.Length == 0)
        {
            return address;
        }

        errors.Add(
            $"{value.Origin}: '{OneLine.Of(value.Text)}' is no address of a receiver; write it as "
                + "http://collector:4317.");
        return null;
    }
}
