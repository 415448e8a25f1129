using System.Text;
using Kahuna.Wire.Routing;

namespace Kahuna.Wire.Scripts;

/// <summary>
/// Where a script runs: at the leader of the bucket that holds its keys. The same rule in client and server. Stateless,
/// any thread.
/// </summary>
internal static class ScriptTarget
{
    /// <summary>The key of a script that names none, and so reads and writes nothing.</summary>
    private const string NoKey = "script";

    /// <summary>
    /// Finds the key to route by. Returns why the script cannot run in one place; null when it can.
    /// </summary>
    /// <param name="program">The script.</param>
    /// <param name="parameters">Its parameters.</param>
    /// <param name="given">A key of the bucket, for a script whose keys are all computed; null: none is given.</param>
    /// <param name="key">The key.</param>
    /// <param name="durability">The durability of the script's keys.</param>
    public static string? Find(
        ScriptProgram program,
        IReadOnlyList<ScriptParameter> parameters,
        string? given,
        out string key,
        out Durability durability)
    {
        key = given ?? "";
        durability = program.UsesEphemeral ? Durability.Ephemeral : Durability.Persistent;
        if (program.UsesPersistent && program.UsesEphemeral)
        {
            return "the script has both persistent and ephemeral keys; it takes keys of one durability";
        }

        if (program.ScansPrefixes)
        {
            return "the script scans by prefix, whose keys may lie in several partitions";
        }

        foreach (ScriptKey named in program.Keys)
        {
            if (NameOf(named, parameters) is not { } name)
            {
                continue;
            }

            if (key.Length == 0)
            {
                key = named.IsBucket ? name + "/" : name;
            }
            else if (!IsOfBucket(name, named.IsBucket, key))
            {
                return $"line {named.Line}, column {named.Column}: \"{name}\" is not in the bucket of \"{key}\"; a "
                    + "script takes keys of one bucket, which is the part before the last /";
            }
        }

        if (key.Length > 0)
        {
            return null;
        }

        key = NoKey;
        return program.HasComputedKeys
            ? "all keys of the script are computed; name one of its bucket with the call, so that it can be routed"
            : null;
    }

    /// <summary>True when a key, or a bucket, is the bucket of another key, or in it.</summary>
    public static bool IsOfBucket(ReadOnlySpan<byte> name, bool isBucket, ReadOnlySpan<byte> key) =>
        (isBucket ? name : KeyRouting.Bucket(name)).SequenceEqual(KeyRouting.Bucket(key));

    private static bool IsOfBucket(string name, bool isBucket, string key) =>
        IsOfBucket(Encoding.UTF8.GetBytes(name), isBucket, Encoding.UTF8.GetBytes(key));

    /// <summary>The name; null when it comes from a parameter that is missing or no string: the run says so.</summary>
    private static string? NameOf(ScriptKey named, IReadOnlyList<ScriptParameter> parameters)
    {
        if (named.Name is not null)
        {
            return named.Name;
        }

        foreach (ScriptParameter parameter in parameters)
        {
            if (parameter.Name == named.Parameter)
            {
                return parameter.Value.Kind == ScriptValueKind.String && parameter.Value.AsString.Length > 0
                    ? parameter.Value.AsString
                    : null;
            }
        }

        return null;
    }
}
