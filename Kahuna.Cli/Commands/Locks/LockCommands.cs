using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Commands.Running;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Locks;

namespace Kahuna.Cli.Commands.Locks;

/// <summary><c>lock</c>: locks with leases and fencing tokens. Static.</summary>
internal static class LockCommands
{
    private static readonly string[] s_columns =
        ["name", "holders", "waiting", "permits", "owner", "token", "remaining"];

    public static CliCommand Create() => new("lock", "Acquire, release and look at locks; run a command under one")
    {
        Acquire(), Extend(), Release(), Get(), List(), Run(),
    };

    private static CliCommand Acquire()
    {
        Argument<string> name = Name();
        Option<TimeSpan?> lease = Given.Time("--lease", "How long the lock is held [default: 60s]");
        Option<TimeSpan?> wait = Given.Time("--wait", "How long to wait for the lock [default: 0]");
        Option<string> owner = Given.Text("--owner", "name", "Name of the owner; without it one is made");
        Option<bool> shared = Given.Flag("--shared", "Hold the lock together with other shared holders");
        Option<string> note = Given.Text("--note", "text", "Text that 'kahuna lock get' shows");
        LevelOption level = new();
        return new CliCommand("acquire", "Acquire a lock that outlives the command, until its lease ends", async call =>
        {
            LockOptions options = new()
            {
                AutoRenew = false,
                ReentrantOwner = call.Get(owner),
                Mode = call.Get(shared) ? LockMode.Shared : LockMode.Exclusive,
                Note = call.Get(note),
                Durability = level.Of(call),
            };

            // The handle is left as it is: disposing it would release the lock.
            LockHandle handle = await AcquireAsync(
                call, call.Get(name), call.Get(lease) ?? TimeSpan.FromMinutes(1), call.Get(wait), options)
                .ConfigureAwait(false);
            call.Output.Write(new Record
            {
                { "name", handle.Resource },
                { "owner", handle.Owner },
                { "token", handle.Token.Value },
                { "remaining", handle.Remaining },
            });
            return ExitCode.Done;
        })
        {
            name, lease, wait, owner, shared, note, level,
        };
    }

    private static CliCommand Extend()
    {
        Argument<string> name = Name();
        (Option<string> owner, Option<long?> token) = Claim();
        Option<TimeSpan?> lease = Given.Time("--lease", "The lease from now on [default: 60s]");
        LevelOption level = new();
        return new CliCommand("extend", "Renew the lease of a lock", async call =>
        {
            TimeSpan? left = await (await call.ConnectAsync().ConfigureAwait(false)).Locks.ExtendAsync(
                call.Get(name), call.Get(owner)!, new FencingToken(call.Get(token)!.Value),
                call.Get(lease) ?? TimeSpan.FromMinutes(1), level.Of(call), call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "extended", left is not null }, { "remaining", left } },
                left is null ? "not held" : "extended");
            return left is null ? ExitCode.NotThere : ExitCode.Done;
        })
        {
            name, owner, token, lease, level,
        };
    }

    private static CliCommand Release()
    {
        Argument<string> name = Name();
        (Option<string> owner, Option<long?> token) = Claim();
        LevelOption level = new();
        return new CliCommand("release", "Release a lock", async call =>
        {
            bool released = await (await call.ConnectAsync().ConfigureAwait(false)).Locks.ReleaseAsync(
                call.Get(name), call.Get(owner)!, new FencingToken(call.Get(token)!.Value), level.Of(call), call.Stop)
                .ConfigureAwait(false);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "released", released } },
                released ? "released" : "not held");
            return released ? ExitCode.Done : ExitCode.NotThere;
        })
        {
            name, owner, token, level,
        };
    }

    private static CliCommand Get()
    {
        Argument<string> name = Name();
        LevelOption level = new();
        return new CliCommand("get", "Show who holds a lock; exit code 1 when it is free", async call =>
        {
            LockDescription? held = await (await call.ConnectAsync().ConfigureAwait(false)).Locks
                .GetAsync(call.Get(name), level.Of(call), call.Stop).ConfigureAwait(false);
            if (held is null)
            {
                return call.NotThere($"Nobody holds the lock '{call.Get(name)}'.");
            }

            call.Output.Write(new Record
            {
                { "name", held.Resource },
                { "permits", held.Permits },
                { "holderCount", held.HolderCount },
                { "waiting", held.WaiterCount },
                { "holders", held.Holders.Select(RecordOf).ToArray() },
            });
            return ExitCode.Done;
        })
        {
            name, level,
        };
    }

    private static CliCommand List()
    {
        Argument<string> prefix = new("prefix")
        {
            Description = "Beginning of the names; all when it is left out",
            Arity = ArgumentArity.ZeroOrOne,
            DefaultValueFactory = static _ => "",
        };
        LevelOption level = new();
        return new CliCommand("list", "List the locks that are held", async call =>
        {
            IAsyncEnumerable<Record> held = (await call.ConnectAsync().ConfigureAwait(false)).Locks
                .ListAsync(call.Get(prefix), level.Of(call), call.Stop)
                .Select(static held => new Record
                {
                    { "name", held.Resource },
                    { "holders", held.HolderCount },
                    { "waiting", held.WaiterCount },
                    { "permits", held.Permits },
                    { "owner", held.Holders.FirstOrDefault()?.Owner },
                    { "token", held.Holders.FirstOrDefault()?.Token.Value },
                    { "remaining", held.Holders.FirstOrDefault()?.Remaining },
                });
            await call.Output.WriteAllAsync(s_columns, held).ConfigureAwait(false);
            return ExitCode.Done;
        })
        {
            prefix, level,
        };
    }

    private static CliCommand Run()
    {
        Argument<string> name = Name();
        RunOptions run = new();
        Option<TimeSpan?> wait = Given.Time("--wait", "How long to wait for the lock [default: 0]");
        Option<bool> shared = Given.Flag("--shared", "Hold the lock together with other shared holders");
        LevelOption level = new();
        CliCommand command = new("run", "Run a command while holding a lock: lock run NAME -- COMMAND", async call =>
        {
            LockOptions options = new()
            {
                Mode = call.Get(shared) ? LockMode.Shared : LockMode.Exclusive,
                Note = Environment.MachineName,
                Durability = level.Of(call),
            };
            LockHandle handle = await AcquireAsync(call, call.Get(name), run.LeaseOf(call), call.Get(wait), options)
                .ConfigureAwait(false);
            await using (handle.ConfigureAwait(false))
            {
                HeldRun held = new(call, $"lock '{handle.Resource}'", handle.LostToken) { Grace = run.GraceOf(call) };
                return await held.RunAsync(call.Get(run.Words), handle.Resource, handle.Token).ConfigureAwait(false);
            }
        })
        {
            name,
        };
        run.AddTo(command);
        command.Add(wait);
        command.Add(shared);
        command.Add(level);
        return command;
    }

    private static async Task<LockHandle> AcquireAsync(
        CommandCall call, string name, TimeSpan lease, TimeSpan? wait, LockOptions options)
    {
        LockClient locks = (await call.ConnectAsync().ConfigureAwait(false)).Locks;
        return wait is null || wait == TimeSpan.Zero
            ? await locks.TryAcquireAsync(name, lease, options, call.Stop).ConfigureAwait(false)
                ?? throw new CliException(
                    $"The lock '{name}' is not free. Wait for it with --wait, or see 'kahuna lock get'.",
                    ExitCode.NotThere)
            : await locks.AcquireAsync(name, lease, wait.Value, options, call.Stop).ConfigureAwait(false);
    }

    private static Record RecordOf(LockHolder holder) => new()
    {
        { "owner", holder.Owner },
        { "token", holder.Token.Value },
        { "mode", holder.Mode.ToString() },
        { "remaining", holder.Remaining },
        { "note", holder.Note },
    };

    private static Argument<string> Name() => new("name") { Description = "Name of the lock" };

    private static (Option<string> Owner, Option<long?> Token) Claim()
    {
        Option<string> owner = Given.Text("--owner", "name", "The owner that 'kahuna lock acquire' printed");
        Option<long?> token = Given.Number("--token", "The fencing token that it printed", min: 1);
        owner.Required = token.Required = true;
        return (owner, token);
    }
}
