using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;

namespace Kahuna.Cli.Commands.Contexts;

/// <summary><c>context</c>: saved clusters. Secrets stay in files of their own; a context names them. Static.</summary>
internal static class ContextCommands
{
    public static CliCommand Create() => new("context", "Save clusters under names, and choose one")
    {
        Add(), Use(), List(), Remove(), Show(),
    };

    private static CliCommand Add()
    {
        Argument<string> name = Name();
        Option<bool> use = Given.Flag("--use", "Use it from now on; the first context always is");
        return new CliCommand("add", "Save a cluster: the options say which, and how to sign in", call =>
        {
            ContextFile file = new(call.Environment);
            ContextBook book = file.Read();
            string endpoints = call.Get(call.Options.Endpoints)
                ?? throw new CliException("Name the nodes of the cluster with -c.");
            Access access = call.Options.OptionsOf(call.Parsed);
            NamedContext context = new()
            {
                Endpoints = endpoints,
                User = access.User,
                PasswordFile = Absolute(access.PasswordFile),
                TokenFile = Absolute(access.TokenFile),
                ClientCertificate = Absolute(access.ClientCertificate),
                ClientCertificateKey = Absolute(access.ClientCertificateKey),
                TrustedCa = Absolute(call.Get(call.Options.TrustedCa)),
            };
            bool isUsed = call.Get(use) || book.Contexts.Count == 0;
            book = book.With(call.Get(name), context);
            file.Write(isUsed ? book with { Current = call.Get(name) } : book);
            call.Output.Write(
                new Record { { "name", call.Get(name) }, { "inUse", isUsed }, { "file", file.Path } },
                isUsed ? "saved and in use" : "saved");
            return Task.FromResult(ExitCode.Done);
        })
        {
            name, use,
        };
    }

    private static CliCommand Use()
    {
        Argument<string> name = Name();
        return new CliCommand("use", "Use a saved cluster from now on", call =>
        {
            ContextFile file = new(call.Environment);
            ContextBook book = file.Read();
            Find(book, call.Get(name));
            file.Write(book with { Current = call.Get(name) });
            call.Output.Write(new Record { { "name", call.Get(name) }, { "inUse", true } }, "in use");
            return Task.FromResult(ExitCode.Done);
        })
        {
            name,
        };
    }

    private static CliCommand List() => new("list", "List the saved clusters", async call =>
    {
        ContextBook book = new ContextFile(call.Environment).Read();
        await call.Output.WriteAllAsync(
            ["name", "inUse", "endpoints"],
            book.Contexts.Select(context => new Record
            {
                { "name", context.Key },
                { "inUse", context.Key == book.Current },
                { "endpoints", context.Value.Endpoints },
            })).ConfigureAwait(false);
        return ExitCode.Done;
    });

    private static CliCommand Remove()
    {
        Argument<string> name = Name();
        return new CliCommand("remove", "Forget a saved cluster", call =>
        {
            ContextFile file = new(call.Environment);
            ContextBook book = file.Read();
            Find(book, call.Get(name));
            file.Write(book.Without(call.Get(name)));
            call.Output.Write(new Record { { "name", call.Get(name) }, { "removed", true } }, "removed");
            return Task.FromResult(ExitCode.Done);
        })
        {
            name,
        };
    }

    private static CliCommand Show()
    {
        Argument<string?> name = new("name")
        {
            Description = "Name of the context; the one in use when it is left out",
            Arity = ArgumentArity.ZeroOrOne,
        };
        return new CliCommand("show", "Show a saved cluster", call =>
        {
            ContextBook book = new ContextFile(call.Environment).Read();
            string shown = call.Parsed.GetValue(name) ?? book.Current
                ?? throw new CliException(
                    "No context is in use; name one, or choose one with 'kahuna context use'.", ExitCode.NotThere);
            NamedContext context = Find(book, shown);
            call.Output.Write(new Record
            {
                { "name", shown },
                { "endpoints", context.Endpoints },
                { "user", context.User },
                { "passwordFile", context.PasswordFile },
                { "tokenFile", context.TokenFile },
                { "clientCertificate", context.ClientCertificate },
                { "clientCertificateKey", context.ClientCertificateKey },
                { "trustedCa", context.TrustedCa },
            });
            return Task.FromResult(ExitCode.Done);
        })
        {
            name,
        };
    }

    private static Argument<string> Name() => new("name") { Description = "Name of the context" };

    private static NamedContext Find(ContextBook book, string name) =>
        book.Contexts.TryGetValue(name, out NamedContext? found)
            ? found
            : throw new CliException(
                $"There is no context '{name}'; 'kahuna context list' lists the contexts.", ExitCode.NotThere);

    /// <summary>The context holds wherever the tool is run.</summary>
    private static string? Absolute(string? path) => path is null ? null : Path.GetFullPath(path);
}
