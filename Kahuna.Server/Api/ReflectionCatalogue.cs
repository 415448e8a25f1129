using System.Collections.Frozen;
using Google.Protobuf.Reflection;
using Kahuna.Client.Wire.Grpc;
using Kahuna.Client.Wire.Protos.Reflection.V1;
using ServiceDescriptor = Google.Protobuf.Reflection.ServiceDescriptor;

namespace Kahuna.Server.Api;

/// <summary>The files, symbols and extensions behind a set of services, and the answers to questions about them. Immutable; any thread.</summary>
internal sealed class ReflectionCatalogue
{
    private readonly string[] _services;
    private readonly FrozenDictionary<string, FileDescriptor> _files;
    private readonly FrozenDictionary<string, FileDescriptor> _symbols;
    private readonly ILookup<string, FieldDescriptor> _extensions;

    public ReflectionCatalogue(IEnumerable<ServiceDescriptor> services)
    {
        ServiceDescriptor[] all = [.. services];
        _services = [.. all.Select(service => service.FullName).Order(StringComparer.Ordinal)];
        Dictionary<string, FileDescriptor> files = new(StringComparer.Ordinal);
        foreach (ServiceDescriptor service in all)
        {
            Collect(service.File, files);
        }

        Dictionary<string, FileDescriptor> symbols = new(StringComparer.Ordinal);
        List<FieldDescriptor> extensions = [];
        foreach (FileDescriptor file in files.Values)
        {
            AddSymbols(file, symbols);
            extensions.AddRange(file.Extensions.UnorderedExtensions);
        }

        _files = files.ToFrozenDictionary(StringComparer.Ordinal);
        _symbols = symbols.ToFrozenDictionary(StringComparer.Ordinal);
        _extensions = extensions.ToLookup(extension => extension.ExtendeeType.FullName, StringComparer.Ordinal);
    }

    /// <summary>Answers one request; what is not there is an answer too.</summary>
    public ServerReflectionResponse Answer(ServerReflectionRequest request)
    {
        ServerReflectionResponse response = new() { ValidHost = request.Host, OriginalRequest = request };
        switch (request.MessageRequestCase)
        {
            case ServerReflectionRequest.MessageRequestOneofCase.ListServices:
                response.ListServicesResponse = new ListServiceResponse { Service = { _services.Select(name => new ServiceResponse { Name = name }) } };
                break;
            case ServerReflectionRequest.MessageRequestOneofCase.FileByFilename:
                AnswerFile(response, _files.GetValueOrDefault(request.FileByFilename), $"There is no file '{request.FileByFilename}'.");
                break;
            case ServerReflectionRequest.MessageRequestOneofCase.FileContainingSymbol:
                AnswerFile(response, _symbols.GetValueOrDefault(request.FileContainingSymbol), $"There is no symbol '{request.FileContainingSymbol}'.");
                break;
            case ServerReflectionRequest.MessageRequestOneofCase.FileContainingExtension:
                ExtensionRequest asked = request.FileContainingExtension;
                FieldDescriptor? extension = _extensions[asked.ContainingType].FirstOrDefault(field => field.FieldNumber == asked.ExtensionNumber);
                AnswerFile(response, extension?.File, $"There is no extension {asked.ExtensionNumber} of '{asked.ContainingType}'.");
                break;
            case ServerReflectionRequest.MessageRequestOneofCase.AllExtensionNumbersOfType:
                AnswerExtensionNumbers(response, request.AllExtensionNumbersOfType);
                break;
            default:
                response.ErrorResponse = Error(GrpcStatusCode.InvalidArgument, "The request asks for nothing.");
                break;
        }

        return response;
    }

    private static void Collect(FileDescriptor file, Dictionary<string, FileDescriptor> files)
    {
        if (files.TryAdd(file.Name, file))
        {
            foreach (FileDescriptor dependency in file.Dependencies)
            {
                Collect(dependency, files);
            }
        }
    }

    private static void AddSymbols(FileDescriptor file, Dictionary<string, FileDescriptor> symbols)
    {
        foreach (ServiceDescriptor service in file.Services)
        {
            symbols[service.FullName] = file;
            foreach (MethodDescriptor method in service.Methods)
            {
                symbols[method.FullName] = file;
            }
        }

        foreach (MessageDescriptor message in file.MessageTypes)
        {
            AddMessage(message, symbols);
        }

        foreach (EnumDescriptor type in file.EnumTypes)
        {
            AddEnum(type, symbols);
        }

        foreach (FieldDescriptor extension in file.Extensions.UnorderedExtensions)
        {
            symbols[extension.FullName] = file;
        }
    }

    private static void AddMessage(MessageDescriptor message, Dictionary<string, FileDescriptor> symbols)
    {
        symbols[message.FullName] = message.File;
        foreach (FieldDescriptor field in message.Fields.InDeclarationOrder())
        {
            symbols[field.FullName] = message.File;
        }

        foreach (OneofDescriptor oneof in message.Oneofs)
        {
            symbols[oneof.FullName] = message.File;
        }

        foreach (MessageDescriptor nested in message.NestedTypes)
        {
            AddMessage(nested, symbols);
        }

        foreach (EnumDescriptor nested in message.EnumTypes)
        {
            AddEnum(nested, symbols);
        }
    }

    private static void AddEnum(EnumDescriptor type, Dictionary<string, FileDescriptor> symbols)
    {
        symbols[type.FullName] = type.File;

        // In protobuf an enum's values are siblings of the enum, not its children; the library's FullName has it otherwise.
        string scope = type.FullName[..^type.Name.Length];
        foreach (EnumValueDescriptor value in type.Values)
        {
            symbols[scope + value.Name] = type.File;
        }
    }

    private static void AnswerFile(ServerReflectionResponse response, FileDescriptor? file, string missing)
    {
        if (file is null)
        {
            response.ErrorResponse = Error(GrpcStatusCode.NotFound, missing);
            return;
        }

        Dictionary<string, FileDescriptor> needed = new(StringComparer.Ordinal);
        Collect(file, needed);
        response.FileDescriptorResponse = new FileDescriptorResponse { FileDescriptorProto = { needed.Values.Select(each => each.SerializedData) } };
    }

    private static ErrorResponse Error(GrpcStatusCode code, string message) => new() { ErrorCode = (int)code, ErrorMessage = message };

    private void AnswerExtensionNumbers(ServerReflectionResponse response, string type)
    {
        if (!_symbols.ContainsKey(type))
        {
            response.ErrorResponse = Error(GrpcStatusCode.NotFound, $"There is no message '{type}'.");
            return;
        }

        response.AllExtensionNumbersResponse = new ExtensionNumberResponse
        {
            BaseTypeName = type,
            ExtensionNumber = { _extensions[type].Select(extension => extension.FieldNumber) },
        };
    }
}
