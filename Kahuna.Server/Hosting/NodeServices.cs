using System.Text;
using Grpc.Health.V1;
using Grpc.HealthCheck;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Access;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Json;
using Kahuna.Server.Api.Protos;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;
using Microsoft.Extensions.Logging.Abstractions;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Hosting;

/// <summary>The gRPC services of a node and the middleware around their calls. Stateless.</summary>
internal static class NodeServices
{
    /// <summary>The names in the health service: the node as a whole (the empty name), and its services.</summary>
    private static readonly string[] s_names = ["", .. Described().Select(static service => service.FullName)];

    /// <summary>Kahuna's own services.</summary>
    public static IEnumerable<ServiceDescriptor> Described() =>
    [
        KeyValuesReflection.Descriptor.Services[0],
        TransactionsReflection.Descriptor.Services[0],
        ScriptsReflection.Descriptor.Services[0],
        SequencesReflection.Descriptor.Services[0],
        LocksReflection.Descriptor.Services[0],
        ClusterReflection.Descriptor.Services[0],
        AdminReflection.Descriptor.Services[0],
    ];

    /// <summary>Adds the gRPC package, with its limits and the interceptor.</summary>
    public static void AddKahunaGrpc(this IServiceCollection services, CallLimits limits)
    {
        services.AddSingleton<CallInterceptor>();
        services.AddGrpc(options =>
        {
            options.MaxReceiveMessageSize = limits.MessageBytesMax;
            options.MaxSendMessageSize = null;
            options.Interceptors.Add<CallInterceptor>();
        }).AddJsonTranscoding(
            static json => (json.TypeRegistry, json.JsonSettings.WriteInt64sAsStrings) = (JsonError.Types, true));
        services.AddGrpcReflection();
    }

    /// <summary>
    /// Adds the check of access, the call guard and reflection. Service instances come from the application's services.
    /// </summary>
    /// <param name="app">The application.</param>
    /// <param name="limits">The limits of a call.</param>
    /// <param name="checkedServices">Services whose requests are checked for valid text.</param>
    /// <param name="log">Receives what callers do not see.</param>
    /// <param name="access">Finds the callers; null: nobody is looked at.</param>
    public static void MapKahunaGrpc(
        this WebApplication app,
        CallLimits limits,
        IEnumerable<ServiceDescriptor> checkedServices,
        ILogger log,
        AccessMiddleware? access = null,
        ServerTraces? traces = null)
    {
        CallGuard guard = new(app.Services, limits, [.. checkedServices, HealthReflection.Descriptor.Services[0]], log);
        app.UseRouting();
        app.UseGrpcWeb(new GrpcWebOptions { DefaultEnabled = true });
        if (traces is not null)
        {
            app.Use(next => http => traces.HandleAsync(http, next));
        }

        if (access is not null)
        {
            app.Use(next => http => access.HandleAsync(http, next));
        }

        app.Use(next => http => guard.HandleAsync(http, next));
        app.MapGrpcReflectionService();
    }

    /// <summary>
    /// Maps the services once without serving them. The gRPC package compiles code for each method it maps; that takes
    /// as long as opening a node's data, and this lets both run in parallel.
    /// </summary>
    public static void Warm()
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(
            new WebApplicationOptions { ContentRootPath = AppContext.BaseDirectory });
        builder.Services.AddLogging();
        builder.WebHost.UseKestrelCore();
        CallLimits limits = new();
        builder.Services.AddKahunaGrpc(limits);
        WebApplication app = builder.Build();
        app.MapKahunaGrpc(limits, Described(), NullLogger.Instance);
        app.MapNodeServices();
    }

    /// <summary>Sets the serving status of all names.</summary>
    public static void SetHealth(HealthServiceImpl health, bool serves)
    {
        foreach (string name in s_names)
        {
            health.SetStatus(
                name,
                serves
                    ? HealthCheckResponse.Types.ServingStatus.Serving
                    : HealthCheckResponse.Types.ServingStatus.NotServing);
        }
    }

    /// <summary>Maps the services of a node.</summary>
    public static void MapNodeServices(this WebApplication app)
    {
        app.MapGrpcService<KeyValuesService>();
        app.MapGrpcService<TransactionsService>();
        app.MapGrpcService<ScriptsService>();
        app.MapGrpcService<SequencesService>();
        app.MapGrpcService<LocksService>();
        app.MapGrpcService<ClusterService>();
        app.MapGrpcService<AdminService>();
        app.MapGrpcService<HealthServiceImpl>();
        Lazy<byte[]> document = new(
            static () => Encoding.UTF8.GetBytes(OpenApiDocument.Of(Described(), ProductVersion.Text)));
        app.MapGet("/openapi.json", http =>
        {
            http.Response.ContentType = "application/json; charset=utf-8";
            return PatientAnswer.SendAsync(http, document.Value);
        });
    }
}
