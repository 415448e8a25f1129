using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Scripts;

namespace Kahuna.Client.Coordination;

/// <summary>
/// What one run of a script has read, as conditions of its commit: each key at its revision, and each range with its
/// number of keys, so that no key came or went. Owned by one run; not thread-safe.
/// </summary>
internal sealed class ScriptReadSet
{
    private readonly Dictionary<(Durability Durability, string Key), long> _revisions = [];
    private readonly List<(byte[] Key, Durability Durability, long Revision)> _keys = [];
    private readonly List<(KeyRange Keys, Durability Durability, int Count)> _ranges = [];

    /// <summary>Conditions in all.</summary>
    public int Count => _keys.Count + _ranges.Count;

    /// <summary>Conditions about ranges.</summary>
    public int Ranges => _ranges.Count;

    /// <summary>The statement that has read the last range.</summary>
    public ScriptPosition LastRange { get; private set; }

    /// <summary>
    /// A key was read twice, at different revisions: no commit can hold, and the script has to run again.
    /// </summary>
    public bool IsTorn { get; private set; }

    /// <summary>A key was read, at its latest revision, 0 when it is absent.</summary>
    public void Add(byte[] key, Durability durability, long revision)
    {
        // Names of keys are valid UTF-8.
        (Durability, string) name = (durability, Encoding.UTF8.GetString(key));
        if (_revisions.TryAdd(name, revision))
        {
            _keys.Add((key, durability, revision));
        }
        else
        {
            IsTorn |= _revisions[name] != revision;
        }
    }

    /// <summary>A range was read. Its keys were added, too.</summary>
    /// <param name="keys">Its bounds, which have room for a key.</param>
    /// <param name="durability">The durability of its keys.</param>
    /// <param name="count">How many keys it has.</param>
    /// <param name="reader">The statement that has read it.</param>
    public void Add(KeyRange keys, Durability durability, int count, ScriptPosition reader)
    {
        _ranges.Add((keys, durability, count));
        LastRange = reader;
    }

    /// <summary>Appends the conditions.</summary>
    public void WriteConditions(ByteBuffer body)
    {
        foreach ((byte[] key, Durability durability, long revision) in _keys)
        {
            CommandList.Append(body, new Command
            {
                Kind = CommandKind.Exists,
                Durability = durability,
                Flags = revision == 0 ? CommandFlags.IfAbsent : CommandFlags.IfRevision,
                ComparedRevision = revision,
                Key = key,
            });
        }

        foreach ((KeyRange keys, Durability durability, int count) in _ranges)
        {
            Command item = RangeCondition.ToItem(durability, keys.Start, keys.End, count);
            CommandList.Append(body, in item);
        }
    }

    /// <summary>Appends a look at one key: a transaction does something.</summary>
    public void WriteLook(ByteBuffer body)
    {
        bool hasKey = _keys.Count > 0;
        CommandList.Append(body, new Command
        {
            Kind = CommandKind.Exists,
            Durability = hasKey ? _keys[0].Durability : _ranges[0].Durability,
            Key = hasKey ? _keys[0].Key : "0"u8,
        });
    }
}
