using System.Net;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Api.Grpc;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Tests.Hosting;

/// <summary>The end of connections whose callers take no bytes, on a web server with the limits of a node.</summary>
public sealed class UnreadConnectionsTests
{
    /// <summary>More than the systems at both ends keep for a connection.</summary>
    private const int Bytes = 32 << 20;

    [Fact]
    public async Task A_caller_that_reads_nothing_does_not_keep_its_connection()
    {
        if (!OperatingSystem.IsLinux())
        {
            return;
        }

        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        UnreadConnections unread = new(TimeSpan.FromSeconds(1));
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().ConfigureKestrel(kestrel =>
        {
            kestrel.Limits.MinResponseDataRate = null;
            kestrel.Listen(IPAddress.Loopback, 0, listen =>
            {
                listen.Protocols = HttpProtocols.Http1;
                listen.Use(next => connection =>
                {
                    connection.ConnectionClosed.Register(() => ended.TrySetResult());
                    return next(connection);
                });
                listen.Use(unread.Middleware);
                listen.UseHttps(TestCertificate.Instance);
            });
        });
        await using WebApplication app = builder.Build();

        // Nothing but the connection ends this answer.
        app.Run(static http => http.Response.Body.WriteAsync(new byte[Bytes]).AsTask());
        await app.StartAsync();
        await using UnreadCaller caller = await UnreadCaller.AskAsync(new Uri(app.Urls.Single()), "/", 1);

        await ended.Task.WaitAsync(LastNet.Minute);
    }
}
