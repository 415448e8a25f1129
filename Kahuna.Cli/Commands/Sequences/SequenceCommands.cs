using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Sequences;

namespace Kahuna.Cli.Commands.Sequences;

/// <summary><c>sequence</c>: unique numbers without gaps. Static.</summary>
internal static class SequenceCommands
{
    public static CliCommand Create() => new("sequence", "Create sequences and take numbers from them")
    {
        New(), Next(), Reserve(), Get(), Update(), Delete(), List(),
    };

    private static CliCommand New()
    {
        Argument<string> name = Name();
        Option<long?> initial = Given.Number(
            "--initial", "First number [default: the bound that it begins at]", long.MinValue);
        Bounds bounds = new();
        CliCommand command = new("create", "Create a sequence; exit code 1 when there is one", async call =>
        {
            SequenceDefinition definition = new()
            {
                Initial = call.Get(initial),
                Increment = call.Get(bounds.Increment) ?? 1,
                Min = call.Get(bounds.Min),
                Max = call.Get(bounds.Max),
                Cycle = call.Get(bounds.Cycle) ?? false,
            };
            bool created = await (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .CreateAsync(call.Get(name), definition, call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "created", created } },
                created ? "created" : "exists already, and was not changed");
            return created ? ExitCode.Done : ExitCode.NotThere;
        })
        {
            name, initial,
        };
        bounds.AddTo(command);
        return command;
    }

    private static CliCommand Next()
    {
        Argument<string> name = Name();
        Option<string> key = IdempotencyKey();
        return new CliCommand("next", "Take the next number", async call =>
        {
            long number = await (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .NextAsync(call.Get(name), Options(call, key), call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "number", number } },
                number.ToString(CultureInfo.InvariantCulture));
            return ExitCode.Done;
        })
        {
            name, key,
        };
    }

    private static CliCommand Reserve()
    {
        Argument<string> name = Name();
        Argument<long> count = new("count") { Description = "How many numbers" };
        Option<string> key = IdempotencyKey();
        return new CliCommand("reserve", "Take several numbers at once", async call =>
        {
            SequenceRange range = await (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .ReserveAsync(call.Get(name), call.Get(count), Options(call, key), call.Stop).ConfigureAwait(false);
            call.Output.Write(new Record
            {
                { "name", call.Get(name) },
                { "first", range.First },
                { "last", range.Last },
                { "count", range.Count },
            });
            return ExitCode.Done;
        })
        {
            name, count, key,
        };
    }

    private static CliCommand Get()
    {
        Argument<string> name = Name();
        return new CliCommand("get", "Show a sequence", async call =>
        {
            SequenceDescription? found = await (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .GetAsync(call.Get(name), call.Stop).ConfigureAwait(false);
            if (found is null)
            {
                return call.NotThere($"There is no sequence '{call.Get(name)}'.");
            }

            call.Output.Write(RecordOf(found));
            return ExitCode.Done;
        })
        {
            name,
        };
    }

    private static CliCommand Update()
    {
        Argument<string> name = Name();
        Bounds bounds = new();
        CliCommand command = new("update", "Change a sequence from the next number on", async call =>
        {
            SequenceChange change = new()
            {
                Increment = call.Get(bounds.Increment),
                Min = call.Get(bounds.Min),
                Max = call.Get(bounds.Max),
                Cycle = call.Get(bounds.Cycle),
            };
            bool updated = await (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .UpdateAsync(call.Get(name), change, call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "updated", updated } },
                updated ? "updated" : "there is no such sequence");
            return updated ? ExitCode.Done : ExitCode.NotThere;
        })
        {
            name,
        };
        bounds.AddTo(command);
        return command;
    }

    private static CliCommand Delete()
    {
        Argument<string> name = Name();
        return new CliCommand("delete", "Delete a sequence", async call =>
        {
            bool deleted = await (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .DeleteAsync(call.Get(name), call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "deleted", deleted } },
                deleted ? "deleted" : "there is no such sequence");
            return deleted ? ExitCode.Done : ExitCode.NotThere;
        })
        {
            name,
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
        return new CliCommand("list", "List sequences", async call =>
        {
            IAsyncEnumerable<Record> found = (await call.ConnectAsync().ConfigureAwait(false)).Sequences
                .ListAsync(call.Get(prefix), call.Stop).Select(RecordOf);
            await call.Output.WriteAllAsync(
                ["name", "latest", "initial", "increment", "min", "max", "cycle"], found).ConfigureAwait(false);
            return ExitCode.Done;
        })
        {
            prefix,
        };
    }

    private static Record RecordOf(SequenceDescription found) => new()
    {
        { "name", found.Name },
        { "latest", found.Latest },
        { "initial", found.Initial },
        { "increment", found.Increment },
        { "min", found.Min },
        { "max", found.Max },
        { "cycle", found.Cycle },
    };

    private static Argument<string> Name() => new("name") { Description = "Name of the sequence" };

    private static Option<string> IdempotencyKey() => Given.Text(
        "--idempotency-key", "text", "Names this allocation: a repeated call gets the same numbers");

    private static SequenceOptions Options(CommandCall call, Option<string> key) =>
        new() { IdempotencyKey = call.Get(key) };

    /// <summary>Increment, bounds and cycle.</summary>
    private sealed class Bounds
    {
        public Option<long?> Increment { get; } = Given.Number("--increment", "Step to the next number", long.MinValue);

        public Option<long?> Min { get; } = Given.Number("--min", "Least number", long.MinValue);

        public Option<long?> Max { get; } = Given.Number("--max", "Greatest number", long.MinValue);

        public Option<bool?> Cycle { get; } = new("--cycle")
        {
            Description = "Begin again at the other bound after the last number; --cycle false ends that",
        };

        public void AddTo(CliCommand command)
        {
            command.Add(Increment);
            command.Add(Min);
            command.Add(Max);
            command.Add(Cycle);
        }
    }
}
