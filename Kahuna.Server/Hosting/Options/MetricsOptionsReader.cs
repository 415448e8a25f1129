using System.Globalization;

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

    private static readonly TimeSpan s_thresholdMax = TimeSpan.FromMinutes(10);

    private static readonly OptionSetting[] s_needMetrics =
    [
        OptionSetting.MetricsTokenFile, OptionSetting.OtlpEndpoint, OptionSetting.SlowLogThreshold,
        OptionSetting.TraceRatio,
    ];

    /// <summary>The options; valid only without errors.</summary>
    public MetricsOptions Read()
    {
        bool isOn = ReadSwitch();
        MetricsOptions options = new()
        {
            IsOn = isOn,
            SlowLogThreshold = ReadThreshold(),
            TraceRatio = ReadRatio(),
            OtlpEndpoint = ReadEndpoint(),
            IsReceiverInEnvironment = s_variables.Any(static name =>
                !string.IsNullOrEmpty(Environment.GetEnvironmentVariable(name))),
        };
        foreach (OptionSetting setting in s_needMetrics)
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

    private TimeSpan? ReadThreshold()
    {
        if (!values.TryGetValue(OptionSetting.SlowLogThreshold, out GivenValue value))
        {
            return MetricsOptions.SlowLogThresholdDefault;
        }

        if (value.Text.Equals("off", StringComparison.OrdinalIgnoreCase))
        {
            return null;
        }

        if (Duration.TryParse(value.Text, out TimeSpan time) && time <= s_thresholdMax)
        {
            return time;
        }

        errors.Add(
            $"{value.Origin}: '{OneLine.Of(value.Text)}' is not a time up to {s_thresholdMax.TotalMinutes} min; "
                + "write it as 100ms, 1s or off.");
        return null;
    }

    private double ReadRatio()
    {
        if (!values.TryGetValue(OptionSetting.TraceRatio, out GivenValue value))
        {
            return 0;
        }

        if (double.TryParse(
                value.Text, NumberStyles.AllowDecimalPoint, CultureInfo.InvariantCulture, out double ratio)
            && ratio is >= 0 and <= 1)
        {
            return ratio;
        }

        errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not a number from 0 to 1, as 0.001.");
        return 0;
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
