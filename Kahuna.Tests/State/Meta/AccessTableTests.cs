using System.Text;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State.Meta;

/// <summary>
/// The records about who may do what: a change is made whole on the version that it names, or not at all.
/// </summary>
public sealed class AccessTableTests
{
    private StateMachine _state = new(new StateLimits());

    [Fact]
    public void A_change_that_names_the_version_is_made_whole()
    {
        Assert.Equal(0UL, Rows.Version);
        Change(0, id: 1, Put("ann", "1"), Put("bob", "2"));
        Assert.Equal((1UL, "ann=1 bob=2"), (Rows.Version, Shown));
        Change(1, id: 2, Put("ann", "longer than before"), Delete("bob"), Put("cid", ""));
        Assert.Equal((2UL, "ann=longer than before cid="), (Rows.Version, Shown));
        Change(2, id: 3, Put("cid", "x"), Delete("nobody"));
        Assert.Equal((3UL, "ann=longer than before cid=x"), (Rows.Version, Shown));
        Assert.Equal([Id(1), Id(2), Id(3)], Rows.Recent);
        Assert.Equal(_state.RecomputeDigest(), _state.Digest);
    }

    [Fact]
    public void A_change_on_another_version_changes_nothing()
    {
        Change(0, id: 1, Put("ann", "1"));
        ulong digest = _state.Digest;
        Change(0, id: 2, Put("ann", "2"));
        Change(2, id: 3, Put("ann", "3"));
        Assert.Equal((1UL, "ann=1", digest), (Rows.Version, Shown, _state.Digest));
    }

    [Fact]
    public void A_change_that_does_not_decode_or_is_too_large_changes_nothing()
    {
        Apply(ToCommand(0, id: 1, [1, 2, 3]));
        Apply(ToCommand(0, id: 1, []));
        AccessRow large = new((byte)'u', "large"u8.ToArray(), new byte[AccessRow.ValueBytesMax]);
        for (int i = 0; i < AccessTable.BytesMax / AccessRow.ValueBytesMax; i++)
        {
            Change(Rows.Version, id: 1, large with { Name = [(byte)i, (byte)(i >> 8)] });
        }

        ulong version = Rows.Version;
        Assert.InRange(version, 200UL, (ulong)AccessTable.BytesMax / AccessRow.ValueBytesMax);
        Change(version, id: 1, large with { Name = [0, 9] });
        Assert.Equal(version, Rows.Version);
        Change(version, id: 1, large with { Name = [0, 0], Value = null }, large with { Name = [0, 9] });
        Assert.Equal(version + 1, Rows.Version);
    }

    [Fact]
    public void The_ids_of_the_newest_changes_are_kept()
    {
        for (ulong i = 0; i < 40; i++)
        {
            Change(i, id: i, Put("ann", $"{i}"));
        }

        Assert.Equal(Enumerable.Range(24, 16).Select(static i => Id((ulong)i)), Rows.Recent);
    }

    [Fact]
    public void The_records_are_the_same_object_until_they_change()
    {
        Change(0, id: 1, Put("ann", "1"));
        AccessRows before = Rows;
        Change(0, id: 2, Put("ann", "2"));
        Assert.Same(before, Rows);
        Change(1, id: 2, Put("ann", "2"));
        Assert.NotSame(before, Rows);
    }

    [Fact]
    public void They_are_stored_and_loaded()
    {
        Change(0, id: 1, Put("ann", "1"), Put("bob", "2"));
        Change(1, id: 2, Delete("ann"));
        using (StateView view = _state.ViewAll())
        {
            StateLoader loader = new(new StateLimits(), view.Summary);
            foreach (byte[] record in StateRecords.TakeAll(view))
            {
                loader.Add(record);
            }

            _state = loader.Finish();
        }

        Assert.Equal((2UL, "bob=2"), (Rows.Version, Shown));
        Assert.Equal([Id(1), Id(2)], Rows.Recent);
        Change(2, id: 3, Put("cid", "3"));
        Assert.Equal((3UL, "bob=2 cid=3"), (Rows.Version, Shown));
    }

    [Fact]
    public void Damaged_rows_are_none_and_good_ones_come_back()
    {
        AccessRow[] rows = [Put("ann", "one"), Delete("bob"), Put("cid", "")];
        byte[] good = AccessRowList.Write(rows);
        Assert.Equal(
            rows.Select(Show), AccessRowList.Read(good)!.Select(Show));
        Random random = new(7);
        for (int i = 0; i < 20_000; i++)
        {
            byte[] bad = good[..random.Next(1, good.Length + 1)];
            bad[random.Next(bad.Length)] ^= (byte)(1 << random.Next(8));
            foreach (AccessRow row in AccessRowList.Read(bad) ?? [])
            {
                Assert.InRange(row.Name.Length, 1, AccessRow.NameBytesMax);
            }
        }

        Assert.Null(AccessRowList.Read(AccessRowList.Write([.. Enumerable.Repeat(rows[0], AccessRow.RowsMax + 1)])));
    }

    private AccessRows Rows => _state.Meta.View().Access;

    private string Shown => string.Join(' ', Rows.Rows.Select(Show).Order(StringComparer.Ordinal));

    private static string Show(AccessRow row) =>
        $"{Encoding.UTF8.GetString(row.Name)}="
            + (row.Value is null ? "none" : Encoding.UTF8.GetString(row.Value));

    private static AccessRow Put(string name, string value) =>
        new((byte)'u', Encoding.UTF8.GetBytes(name), Encoding.UTF8.GetBytes(value));

    private static AccessRow Delete(string name) => new((byte)'u', Encoding.UTF8.GetBytes(name), null);

    private static AccessChangeId Id(ulong id) => new(id, ~id);

    private void Change(ulong version, ulong id, params AccessRow[] rows) =>
        Apply(ToCommand(version, id, AccessRowList.Write(rows)));

    private static MetaCommand ToCommand(ulong version, ulong id, byte[] rows) => new(CommandKind.AccessChange)
    {
        Incarnation = Id(id).High,
        Nonce = Id(id).Low,
        Number = version,
        Rows = rows,
    };

    private void Apply(MetaCommand command)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        command.Write(bytes);
        Assert.True(Command.TryRead(bytes.Written, out Command decoded));
        _state.Apply(in decoded, null);
        bytes.Return();
    }
}
