using System.Globalization;
using Kahuna.Server.Access;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Access;

/// <summary>
/// Random identities, commands and names: what is allowed is what a model allows that goes through all names of a small
/// world, grant by grant. The model knows nothing of intervals.
/// </summary>
public sealed class AccessMatrixTests
{
    private const int Identities = 400;
    private const int CommandsPerIdentity = 300;
    private const int Bits = 8;

    private static readonly CommandKind[] s_keyKinds =
    [
        CommandKind.Set, CommandKind.Delete, CommandKind.Extend, CommandKind.Increment, CommandKind.Get,
        CommandKind.Exists,
    ];

    private static readonly CommandKind[] s_kinds =
    [
        .. Enumerable.Range(0, 256).Select(static kind => (CommandKind)kind)
            .Where(static kind => CommandKinds.Has(kind, CommandTraits.FromClients)),
    ];

    private static readonly CommandFlags[] s_flags =
    [
        CommandFlags.None, CommandFlags.None, CommandFlags.IfAbsent, CommandFlags.IfPresent, CommandFlags.NullCompared,
        CommandFlags.IfRevision, CommandFlags.ReturnPrevious, CommandFlags.WithoutHistory, CommandFlags.Ttl,
    ];

    private readonly NameUniverse _names = new();

    [Fact]
    public void What_is_allowed_is_what_the_model_allows()
    {
        Random random = new(20_260_728);
        int allowed = 0;
        HashSet<CommandKind> allowedKinds = [];
        for (int identity = 0; identity < Identities; identity++)
        {
            List<(Grant Grant, string Name)> grants = [];
            for (int i = random.Next(6); i >= 0; i--)
            {
                grants.Add(RandomGrant(random));
            }

            Rights rights = Rights.Of(grants.Select(static row => row.Grant));
            bool[][] may = Model(grants);
            for (int i = 0; i < CommandsPerIdentity; i++)
            {
                AccessCommand command = RandomCommand(random, grants);
                bool expected = Needs(command).All(need => IsMet(may, need));
                string? refusal = command.Refusal(rights);
                Assert.True(
                    expected == refusal is null,
                    $"identity {identity}, {Describe(command)}: the model says {expected}, and the answer is "
                        + $"{refusal ?? "yes"}; grants: "
                        + string.Join(", ", grants.Select(static row => $"{row.Grant} '{row.Name}'")));
                allowed += expected ? 1 : 0;
                if (expected)
                {
                    allowedKinds.Add(command.Kind);
                }
            }
        }

        // Neither answer is the rare one, and each kind was allowed to somebody.
        Assert.InRange(allowed, Identities * CommandsPerIdentity / 5, Identities * CommandsPerIdentity * 4 / 5);
        Assert.Equal(s_kinds, allowedKinds.Order());
    }

    /// <summary>For each durability and permission: which names of the world are allowed.</summary>
    private bool[][] Model(List<(Grant Grant, string Name)> grants)
    {
        bool[][] may = new bool[2 * Bits][];
        for (int row = 0; row < may.Length; row++)
        {
            GrantLevels level = row < Bits ? GrantLevels.Persistent : GrantLevels.Ephemeral;
            Permissions permission = (Permissions)(1 << (row % Bits));
            List<(Grant Grant, string Name)> some =
            [
                .. grants.Where(grant =>
                    (grant.Grant.Permissions & permission) != 0 && (grant.Grant.Levels & level) != 0),
            ];
            may[row] =
            [
                .. _names.Names.Select(
                    name => some.Exists(grant => NameUniverse.Covers(grant.Grant, grant.Name, name))),
            ];
        }

        return may;
    }

    private static bool IsMet(bool[][] may, Need need)
    {
        int bit = System.Numerics.BitOperations.Log2((uint)need.Permission);
        return need.Places is null
            ? may[bit].Contains(true) || may[bit + Bits].Contains(true)
            : need.Places.All(place => may[bit + (need.Durability == Durability.Persistent ? 0 : Bits)][place]);
    }

    /// <summary>The names of a range; none but some or other for the one that has no names at all.</summary>
    private int[]? OfRange(AccessCommand command) =>
        command.Kind == CommandKind.KeyRange && command.Key == command.End
            ? null : _names.Range(command.Key, command.End);

    /// <summary>What a command needs, written down once more and in another way.</summary>
    private IEnumerable<Need> Needs(AccessCommand command)
    {
        Durability durability = command.Durability;
        if (command.Fence is { } fence)
        {
            yield return new Need(Permissions.Lock, durability, _names.Name(fence));
        }

        (Permissions[] permissions, int[]? places) = command.Kind switch
        {
            CommandKind.GetMany or CommandKind.Transaction or CommandKind.TransactionPrepare => ([], null),
            CommandKind.TransactionDecide
                or CommandKind.TransactionFinish
                or CommandKind.TransactionForget
                or CommandKind.TransactionRelease => ([Permissions.Transaction], null),
            CommandKind.KeyRange or CommandKind.CutOpen or CommandKind.CutConfirm or CommandKind.CutEnd =>
                ([Permissions.Read], OfRange(command)),
            CommandKind.KeyRangeDelete => ([Permissions.Read, Permissions.Write], OfRange(command)),
            CommandKind.Script =>
                ([Permissions.Script, Permissions.Read, Permissions.Write], _names.Bucket(BucketOf(command.Key))),
            CommandKind.SequenceList => ([Permissions.Sequence], _names.Prefix(command.Key)),
            CommandKind.LockList => ([Permissions.Lock], _names.Prefix(command.Key)),
            CommandKind.TransactionHold => ([Permissions.Transaction, Permissions.Read], _names.Name(command.Key)),
            _ when CommandKinds.IsLock(command.Kind) => ([Permissions.Lock], _names.Name(command.Key)),
            _ when CommandKinds.IsSequence(command.Kind) => ([Permissions.Sequence], _names.Name(command.Key)),
            _ => (OfKey(command), _names.Name(command.Key)),
        };
        foreach (Permissions permission in permissions)
        {
            yield return new Need(permission, durability, places);
        }

        foreach (AccessCommand item in command.Items)
        {
            if (command.Kind != CommandKind.GetMany)
            {
                int[] touched = item.Kind == CommandKind.KeyRange
                    ? _names.Range(item.Key, item.End)
                    : _names.Name(item.Key);
                yield return new Need(Permissions.Transaction, durability, touched);
            }

            if (item.Kind == CommandKind.KeyRange)
            {
                yield return new Need(Permissions.Read, durability, _names.Range(item.Key, item.End));
                continue;
            }

            foreach (Need need in Needs(item))
            {
                yield return need;
            }
        }
    }

    private static Permissions[] OfKey(AccessCommand command)
    {
        bool changes = command.Kind is not (CommandKind.Get or CommandKind.Exists);
        bool tells = command.Kind is CommandKind.Get or CommandKind.Exists or CommandKind.Increment
            || (command.Flags & ~(CommandFlags.WithoutHistory | CommandFlags.Ttl)) != 0;
        return
        [
            .. changes ? [Permissions.Write] : (Permissions[])[],
            .. tells ? [Permissions.Read] : (Permissions[])[],
        ];
    }

    private static string BucketOf(string key) =>
        key.LastIndexOf('/') is >= 0 and var slash ? key[..slash] : key;

    private (Grant Grant, string Name) RandomGrant(Random random)
    {
        GrantScope scope = (GrantScope)random.Next(3);
        string name = random.Next(4) == 0 && scope == GrantScope.Prefix
            ? ""
            : _names.Short[random.Next(random.Next(2) == 0 ? 3 : _names.Short.Count)];
        Permissions permissions = random.Next(3) switch
        {
            0 => Permissions.Data,
            1 => (Permissions)random.Next(1, 256),
            _ => Permissions.Read | Permissions.Transaction | (Permissions)random.Next(256),
        };
        GrantLevels levels = random.Next(3) == 0 ? (GrantLevels)random.Next(1, 3) : GrantLevels.Both;
        return (new Grant(permissions, levels, scope, AccessCommand.Bytes(name)), name);
    }

    private AccessCommand RandomCommand(Random random, List<(Grant Grant, string Name)> grants)
    {
        CommandKind kind = s_kinds[random.Next(s_kinds.Length)];
        bool isList = CommandKinds.Has(kind, CommandTraits.IsList);
        AccessCommand command = Randomly(random, kind, RandomName(random, grants, mayBeEmpty: isList), grants) with
        {
            Durability = random.Next(4) == 0 ? Durability.Ephemeral : Durability.Persistent,
            Fence = random.Next(4) == 0 && (CommandKinds.Of(kind).Flags & CommandFlags.Fenced) != 0
                ? RandomName(random, grants)
                : null,
        };
        if (!CommandKinds.Has(kind, CommandTraits.HasItems))
        {
            return command;
        }

        List<AccessCommand> items = [];
        int ranges = kind == CommandKind.GetMany ? 0 : random.Next(2);
        for (int i = random.Next(3) + 1; i > 0; i--)
        {
            CommandKind item = ranges > 0 && i == 1 ? CommandKind.KeyRange
                : kind == CommandKind.GetMany ? CommandKind.Get
                : s_keyKinds[random.Next(s_keyKinds.Length)];
            items.Add(Randomly(random, item, RandomName(random, grants), grants) with
            {
                Durability = command.Durability,
            });
        }

        return command with { Items = items, Flags = CommandFlags.None };
    }

    private AccessCommand Randomly(
        Random random, CommandKind kind, string key, List<(Grant Grant, string Name)> grants) => new(kind, key)
        {
            Flags = kind is CommandKind.Set or CommandKind.Delete or CommandKind.Extend
                ? s_flags[random.Next(s_flags.Length)]
                : CommandFlags.None,
            End = !CommandKinds.Has(kind, CommandTraits.IsList)
                || CommandKinds.Of(kind).Table != CommandTable.KeyValues
                || random.Next(4) == 0
                    ? null
                    : RandomEnd(random, key, grants),
        };

    /// <summary>A name, often one near those of the grants.</summary>
    private string RandomName(Random random, List<(Grant Grant, string Name)> grants, bool mayBeEmpty = false)
    {
        string granted = grants[random.Next(grants.Count)].Name;
        string name = random.Next(4) switch
        {
            0 => _names.Short[random.Next(_names.Short.Count)],
            1 => granted,
            2 => granted + "/",
            _ => granted + "a",
        };
        return name.Length > 3 ? name[..3] : name.Length == 0 && !mayBeEmpty ? "a" : name;
    }

    /// <summary>The end of a range: what lies behind a prefix or a key, or any name.</summary>
    private string RandomEnd(Random random, string start, List<(Grant Grant, string Name)> grants) =>
        random.Next(4) switch
        {
            0 => RandomName(random, grants),
            1 => start + "\0",
            _ when start.Length > 0 => string.Concat(start[..^1], ((char)(start[^1] + 1)).ToString()),
            _ => "b",
        };

    private static string Describe(AccessCommand command) => string.Create(
        CultureInfo.InvariantCulture,
        $"{command.Kind} '{command.Key}' to '{command.End}' fence '{command.Fence}' {command.Durability} "
            + $"{command.Flags} [{string.Join("; ", command.Items.Select(Describe))}]");

    /// <summary>A permission on all names at these places; without places: on any name.</summary>
    private sealed record Need(Permissions Permission, Durability Durability, int[]? Places);
}
