using Kahuna.Client;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Client.Outcomes;
using Kahuna.Client.Transactions;
using Kahuna.Client.Watches;

namespace Kahuna.Tests.Access.Hostile;

/// <summary>
/// A user that works on its own names, and knows what each of them must hold: it is the only one that may change them.
/// All of its values have the marker, and half of its names. Owned by one task.
/// </summary>
/// <param name="name">Its name, and that of its bucket.</param>
/// <param name="client">Signed in as this user.</param>
/// <param name="marker">The marker.</param>
/// <param name="seed">Decides what it does.</param>
/// <param name="tally">Gets what it did, and what was wrong.</param>
internal sealed class LegitimateUser(
    string name, KahunaClient client, SecretMarker marker, int seed, HostileTally tally)
{
    private const int Keys = 20;

    private static readonly TimeSpan s_think = TimeSpan.FromMilliseconds(15);

    private readonly Random _random = new(seed);
    private readonly Dictionary<string, HashSet<string?>> _expected = new(StringComparer.Ordinal);
    private readonly HashSet<string> _unknown = new(StringComparer.Ordinal);
    private int _number;

    /// <summary>Where its names begin.</summary>
    public string Bucket => name;

    /// <summary>Works until the token ends it.</summary>
    public async Task RunAsync(CancellationToken end)
    {
        Task watching = WatchAsync(end);
        while (!end.IsCancellationRequested)
        {
            await StepAsync();
            await Task.Delay(s_think, CancellationToken.None);
        }

        await watching;
    }

    /// <summary>Compares all names of the bucket with what they must hold.</summary>
    /// <param name="reader">Somebody who may read them all.</param>
    public async Task CheckAsync(KahunaClient reader)
    {
        Dictionary<string, string?> found = new(StringComparer.Ordinal);
        await foreach (KeyValueEntry entry in reader.KeyValues.ScanAsync(Bucket + "/"))
        {
            found[entry.Key] = entry.Value.AsString();
        }

        foreach ((string key, HashSet<string?> values) in _expected)
        {
            if (!values.Contains(found.GetValueOrDefault(key)))
            {
                tally.Wrong($"{key} holds something that {name} has not written");
            }

            found.Remove(key);
        }

        if (found.Count > 0)
        {
            tally.Wrong($"{found.Count} names of {name} are not its own, as {found.Keys.First()}");
        }
    }

    private async Task StepAsync()
    {
        string key = KeyOf(_random.Next(Keys));
        switch (_random.Next(5))
        {
            case 0:
            case 1:
                await ChangeAsync([key], value => client.KeyValues.SetAsync(key, value).AsTask());
                break;
            case 2:
                await ReadAsync(key);
                break;
            case 3:
                await ChangeAsync([key], value => LockedAsync(key, value));
                break;
            default:
                string other = KeyOf(_random.Next(Keys));
                await ChangeAsync([key, other], value => TransactAsync([key, other], value));
                break;
        }
    }

    private string KeyOf(int number) =>
        number % 2 == 0 ? $"{Bucket}/plain-{number}" : $"{Bucket}/{marker.Text}-{number}";

    private async Task ReadAsync(string key)
    {
        await TryAsync("legitimate reads", async () =>
        {
            GetResult found = await client.KeyValues.GetAsync(key);
            string? value = found.Found ? found.Value.AsString() : null;
            HashSet<string?> expected = ExpectedOf(key);
            if (!expected.Contains(value))
            {
                tally.Wrong($"{name} read something that it has not written in {key}");
            }

            Narrow(expected, value);
        });
    }

    private async Task ChangeAsync(string[] keys, Func<string, Task> change)
    {
        string value = $"{marker.Text} {name} {++_number}";
        foreach (string key in keys)
        {
            ExpectedOf(key).Add(value);
        }

        OperationOutcome outcome = await TryAsync("legitimate changes", () => change(value));
        foreach (string key in keys)
        {
            HashSet<string?> expected = ExpectedOf(key);
            if (outcome == OperationOutcome.Happened)
            {
                Narrow(expected, value);
            }
            else if (outcome == OperationOutcome.DidNotHappen)
            {
                expected.Remove(value);
            }
            else
            {
                _unknown.Add(value);
            }
        }
    }

    private async Task LockedAsync(string key, string value)
    {
        await using LockHandle handle = await client.Locks.AcquireAsync(
            $"{Bucket}/lock", TimeSpan.FromSeconds(30), TimeSpan.FromSeconds(30));
        await client.KeyValues.SetAsync(key, value, new SetOptions { Fence = handle.Fence });
    }

    private async Task TransactAsync(string[] keys, string value)
    {
        await using Transaction transaction = await client.Transactions.BeginAsync();
        foreach (string key in keys.Distinct())
        {
            await transaction.SetAsync(key, value);
        }

        await transaction.CommitAsync();
    }

    /// <summary>An error that says that the cluster is busy or changes its leader is nobody's fault.</summary>
    private async Task<OperationOutcome> TryAsync(string what, Func<Task> action)
    {
        try
        {
            await action();
            tally.Add(what);
            return OperationOutcome.Happened;
        }
        catch (KahunaException failure) when (failure.Code
            is KahunaErrorCode.Unavailable
            or KahunaErrorCode.DeadlineExceeded
            or KahunaErrorCode.ConnectionLost
            or KahunaErrorCode.Overloaded
            or KahunaErrorCode.OutcomeUnknown
            or KahunaErrorCode.TransactionConflict
            or KahunaErrorCode.KeyInTransaction
            or KahunaErrorCode.LockBusy
            or KahunaErrorCode.LockLost)
        {
            tally.Add("legitimate calls that ended with a passing error");
            return failure.Outcome;
        }
        catch (KahunaException failure)
        {
            tally.Wrong($"{name} got {failure.Code}: {failure.Message}");
            return failure.Outcome;
        }
    }

    private async Task WatchAsync(CancellationToken end)
    {
        while (!end.IsCancellationRequested)
        {
            try
            {
                WatchOptions options = new() { Scope = WatchScope.Bucket };
                await foreach (WatchEvent change in client.KeyValues.WatchAsync(Bucket, options, end))
                {
                    tally.Add("changes told to legitimate users");
                    if (change.Kind is WatchEventKind.Set
                        && !change.Key.StartsWith(Bucket + "/", StringComparison.Ordinal))
                    {
                        tally.Wrong($"{name} was told of {change.Key}");
                    }
                }
            }
            catch (KahunaException passing) when (
                passing.Code is not (KahunaErrorCode.PermissionDenied or KahunaErrorCode.Unauthenticated))
            {
                await Task.Delay(s_think, CancellationToken.None);
            }
            catch (KahunaException refused)
            {
                tally.Wrong($"the watch of {name} ended with {refused.Code}: {refused.Message}");
                return;
            }
            catch (OperationCanceledException)
            {
                return;
            }
        }
    }

    /// <summary>It holds this, or what a change of an unknown outcome may still make of it.</summary>
    private void Narrow(HashSet<string?> expected, string? value) =>
        expected.RemoveWhere(other => other != value && (other is null || !_unknown.Contains(other)));

    private HashSet<string?> ExpectedOf(string key)
    {
        if (!_expected.TryGetValue(key, out HashSet<string?>? values))
        {
            _expected[key] = values = [null];
        }

        return values;
    }
}
