namespace Kahuna.Server.Access;

/// <summary>
/// Asks for permissions on names. An answer of null: they are all there. Otherwise it is a sentence that names the
/// first one that is missing, and the names as the caller sent them; nothing that the caller did not send. Stateless,
/// any thread. Allocates only when it refuses.
/// </summary>
internal static class NeededRights
{
    /// <summary>On one name, on those of a range, or on those with a prefix.</summary>
    /// <param name="rights">What the caller may do.</param>
    /// <param name="wanted">The permissions.</param>
    /// <param name="durability">Of the names.</param>
    /// <param name="noun">What they name: <c>key</c>, <c>lock</c> or <c>sequence</c>.</param>
    /// <param name="asked">The names.</param>
    public static string? On(
        Rights rights, Permissions wanted, Durability durability, string noun, scoped in AskedNames asked) =>
        rights.FirstMissing(wanted, durability, in asked) is { } missing
            ? Sentence(missing, asked.Describe($"{Word(durability)} {noun}"))
            : null;

    /// <summary>On all keys of a bucket and of the buckets inside it.</summary>
    public static string? OnBucket(
        Rights rights, Permissions wanted, Durability durability, ReadOnlySpan<byte> bucket)
    {
        for (uint left = (uint)wanted; left != 0; left &= left - 1)
        {
            Permissions permission = (Permissions)(left & (uint)-(int)left);
            if (!rights.CoversBucket(permission, durability, bucket))
            {
                return Sentence(
                    permission, $"the {Word(durability)} keys of the bucket {QuotedName.Of(bucket)}");
            }
        }

        return wanted == Permissions.None ? Sentence(wanted, "any bucket") : null;
    }

    /// <summary>On some name or other.</summary>
    public static string? Somewhere(Rights rights, Permissions wanted) =>
        rights.CoversSome(wanted) ? null : Sentence(wanted, "all names");

    private static string Word(Durability durability) => durability switch
    {
        Durability.Persistent => "persistent",
        Durability.Ephemeral => "ephemeral",
        _ => "unknown",
    };

    private static string Sentence(Permissions missing, string names) =>
        $"The permission {missing.ToString().ToLowerInvariant()} is missing on {names}.";
}
