using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Tests.Tidy;

/// <summary>The example of the README, compiled; <see cref="ReadmeTests"/> compares the two.</summary>
internal static class ReadmeExample
{
    public static async Task RunAsync()
    {
        await using KahunaClient kahuna = KahunaClient.Connect("https://127.0.0.1:8082");

        await kahuna.KeyValues.SetAsync("config/limit", "100");
        GetResult found = await kahuna.KeyValues.GetAsync("config/limit");
        Console.WriteLine($"{found.Value} at revision {found.Revision}");

        SetOptions unchanged = new() { OnlyIfRevision = found.Revision };
        SetResult changed = await kahuna.KeyValues.SetAsync("config/limit", "200", unchanged);
        Console.WriteLine(changed.Applied ? "changed" : "another client was faster");
    }
}
