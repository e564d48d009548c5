package simhost

import (
	"fmt"
	"maps"
	"slices"
)

// Proc is a procedure number of libvirt's remote program (remote_protocol.x).
// Its String is the procedure's name as the client library spells it.
type Proc uint32

// The procedures that the simulated daemon knows. Numbers are libvirt's.
const (
	ProcConnectOpen                           Proc = 1
	ProcConnectClose                          Proc = 2
	ProcConnectGetType                        Proc = 3
	ProcConnectGetVersion                     Proc = 4
	ProcNodeGetInfo                           Proc = 6
	ProcConnectGetCapabilities                Proc = 7
	ProcDomainCreate                          Proc = 9
	ProcDomainDestroy                         Proc = 12
	ProcDomainGetXMLDesc                      Proc = 14
	ProcDomainGetAutostart                    Proc = 15
	ProcDomainGetInfo                         Proc = 16
	ProcDomainLookupByID                      Proc = 22
	ProcDomainLookupByName                    Proc = 23
	ProcDomainLookupByUUID                    Proc = 24
	ProcDomainReboot                          Proc = 27
	ProcDomainResume                          Proc = 28
	ProcDomainSetAutostart                    Proc = 29
	ProcDomainShutdown                        Proc = 33
	ProcDomainSuspend                         Proc = 34
	ProcDomainUndefine                        Proc = 35
	ProcNetworkGetXMLDesc                     Proc = 43
	ProcNetworkGetBridgeName                  Proc = 45
	ProcNetworkLookupByName                   Proc = 46
	ProcNetworkLookupByUUID                   Proc = 47
	ProcConnectGetHostname                    Proc = 59
	ProcConnectSupportsFeature                Proc = 60
	ProcAuthList                              Proc = 66
	ProcAuthPolkit                            Proc = 70
	ProcConnectGetURI                         Proc = 110
	ProcConnectIsSecure                       Proc = 149
	ProcDomainIsActive                        Proc = 150
	ProcNetworkIsActive                       Proc = 152
	ProcConnectGetLibVersion                  Proc = 157
	ProcDomainCreateWithFlags                 Proc = 196
	ProcDomainGetState                        Proc = 212
	ProcDomainUndefineFlags                   Proc = 231
	ProcDomainDestroyFlags                    Proc = 234
	ProcDomainReset                           Proc = 245
	ProcDomainShutdownFlags                   Proc = 258
	ProcDomainGetMetadata                     Proc = 265
	ProcConnectListAllDomains                 Proc = 273
	ProcConnectListAllNetworks                Proc = 283
	ProcConnectDomainEventCallbackRegisterAny Proc = 316
	ProcConnectDomainEventCallbackDeregister  Proc = 317
	ProcDomainEventCallbackLifecycle          Proc = 318 // message, never called
	ProcDomainEventCallbackReboot             Proc = 319 // message, never called
	ProcNetworkGetDhcpLeases                  Proc = 341
	ProcConnectGetAllDomainStats              Proc = 344
	ProcDomainEventCallbackAgentLifecycle     Proc = 348 // message, never called
	ProcDomainInterfaceAddresses              Proc = 353
	ProcDomainIsPersistent                    Proc = 151
	ProcNetworkIsPersistent                   Proc = 153
	ProcConnectRegisterCloseCallback          Proc = 360
	ProcConnectUnregisterCloseCallback        Proc = 361
	ProcDomainAgentSetResponseTimeout         Proc = 420

	ProcStoragePoolRefresh                Proc = 83
	ProcStoragePoolLookupByName           Proc = 84
	ProcStoragePoolLookupByUUID           Proc = 85
	ProcStoragePoolLookupByVolume         Proc = 86
	ProcStoragePoolGetInfo                Proc = 87
	ProcStoragePoolGetXMLDesc             Proc = 88
	ProcStorageVolCreateXML               Proc = 93
	ProcStorageVolDelete                  Proc = 94
	ProcStorageVolLookupByName            Proc = 95
	ProcStorageVolLookupByKey             Proc = 96
	ProcStorageVolLookupByPath            Proc = 97
	ProcStorageVolGetInfo                 Proc = 98
	ProcStorageVolGetXMLDesc              Proc = 99
	ProcStorageVolGetPath                 Proc = 100
	ProcStoragePoolIsActive               Proc = 154
	ProcStorageVolUpload                  Proc = 208
	ProcStorageVolDownload                Proc = 209
	ProcConnectListAllStoragePools        Proc = 281
	ProcStoragePoolListAllVolumes         Proc = 282
	ProcDomainDefineXML                   Proc = 11
	ProcDomainDefineXMLFlags              Proc = 350
	ProcDomainSetMetadata                 Proc = 264
	ProcDomainEventCallbackMetadataChange Proc = 379 // message, never called
)

// String returns the name that the client library gives the procedure, or
// "Proc(N)" for one that the simulation does not know.
func (p Proc) String() string {
	switch p {
	case ProcConnectOpen:
		return "ConnectOpen"
	case ProcConnectClose:
		return "ConnectClose"
	case ProcConnectGetType:
		return "ConnectGetType"
	case ProcConnectGetVersion:
		return "ConnectGetVersion"
	case ProcNodeGetInfo:
		return "NodeGetInfo"
	case ProcConnectGetCapabilities:
		return "ConnectGetCapabilities"
	case ProcDomainCreate:
		return "DomainCreate"
	case ProcDomainDestroy:
		return "DomainDestroy"
	case ProcDomainGetXMLDesc:
		return "DomainGetXMLDesc"
	case ProcDomainGetAutostart:
		return "DomainGetAutostart"
	case ProcDomainGetInfo:
		return "DomainGetInfo"
	case ProcDomainLookupByID:
		return "DomainLookupByID"
	case ProcDomainLookupByName:
		return "DomainLookupByName"
	case ProcDomainLookupByUUID:
		return "DomainLookupByUUID"
	case ProcDomainReboot:
		return "DomainReboot"
	case ProcDomainResume:
		return "DomainResume"
	case ProcDomainSetAutostart:
		return "DomainSetAutostart"
	case ProcDomainShutdown:
		return "DomainShutdown"
	case ProcDomainSuspend:
		return "DomainSuspend"
	case ProcDomainUndefine:
		return "DomainUndefine"
	case ProcNetworkGetXMLDesc:
		return "NetworkGetXMLDesc"
	case ProcNetworkGetBridgeName:
		return "NetworkGetBridgeName"
	case ProcNetworkLookupByName:
		return "NetworkLookupByName"
	case ProcNetworkLookupByUUID:
		return "NetworkLookupByUUID"
	case ProcConnectGetHostname:
		return "ConnectGetHostname"
	case ProcConnectSupportsFeature:
		return "ConnectSupportsFeature"
	case ProcAuthList:
		return "AuthList"
	case ProcAuthPolkit:
		return "AuthPolkit"
	case ProcConnectGetURI:
		return "ConnectGetUri"
	case ProcConnectIsSecure:
		return "ConnectIsSecure"
	case ProcDomainIsActive:
		return "DomainIsActive"
	case ProcNetworkIsActive:
		return "NetworkIsActive"
	case ProcConnectGetLibVersion:
		return "ConnectGetLibVersion"
	case ProcDomainCreateWithFlags:
		return "DomainCreateWithFlags"
	case ProcDomainGetState:
		return "DomainGetState"
	case ProcDomainUndefineFlags:
		return "DomainUndefineFlags"
	case ProcDomainDestroyFlags:
		return "DomainDestroyFlags"
	case ProcDomainReset:
		return "DomainReset"
	case ProcDomainShutdownFlags:
		return "DomainShutdownFlags"
	case ProcDomainGetMetadata:
		return "DomainGetMetadata"
	case ProcConnectListAllDomains:
		return "ConnectListAllDomains"
	case ProcConnectListAllNetworks:
		return "ConnectListAllNetworks"
	case ProcConnectDomainEventCallbackRegisterAny:
		return "ConnectDomainEventCallbackRegisterAny"
	case ProcConnectDomainEventCallbackDeregister:
		return "ConnectDomainEventCallbackDeregisterAny"
	case ProcDomainEventCallbackLifecycle:
		return "DomainEventCallbackLifecycle"
	case ProcDomainEventCallbackReboot:
		return "DomainEventCallbackReboot"
	case ProcNetworkGetDhcpLeases:
		return "NetworkGetDhcpLeases"
	case ProcConnectGetAllDomainStats:
		return "ConnectGetAllDomainStats"
	case ProcDomainEventCallbackAgentLifecycle:
		return "DomainEventCallbackAgentLifecycle"
	case ProcDomainInterfaceAddresses:
		return "DomainInterfaceAddresses"
	case ProcDomainIsPersistent:
		return "DomainIsPersistent"
	case ProcNetworkIsPersistent:
		return "NetworkIsPersistent"
	case ProcConnectRegisterCloseCallback:
		return "ConnectRegisterCloseCallback"
	case ProcConnectUnregisterCloseCallback:
		return "ConnectUnregisterCloseCallback"
	case ProcDomainAgentSetResponseTimeout:
		return "DomainAgentSetResponseTimeout"
	case ProcStoragePoolRefresh:
		return "StoragePoolRefresh"
	case ProcStoragePoolLookupByName:
		return "StoragePoolLookupByName"
	case ProcStoragePoolLookupByUUID:
		return "StoragePoolLookupByUUID"
	case ProcStoragePoolLookupByVolume:
		return "StoragePoolLookupByVolume"
	case ProcStoragePoolGetInfo:
		return "StoragePoolGetInfo"
	case ProcStoragePoolGetXMLDesc:
		return "StoragePoolGetXMLDesc"
	case ProcStorageVolCreateXML:
		return "StorageVolCreateXML"
	case ProcStorageVolDelete:
		return "StorageVolDelete"
	case ProcStorageVolLookupByName:
		return "StorageVolLookupByName"
	case ProcStorageVolLookupByKey:
		return "StorageVolLookupByKey"
	case ProcStorageVolLookupByPath:
		return "StorageVolLookupByPath"
	case ProcStorageVolGetInfo:
		return "StorageVolGetInfo"
	case ProcStorageVolGetXMLDesc:
		return "StorageVolGetXMLDesc"
	case ProcStorageVolGetPath:
		return "StorageVolGetPath"
	case ProcStoragePoolIsActive:
		return "StoragePoolIsActive"
	case ProcStorageVolUpload:
		return "StorageVolUpload"
	case ProcStorageVolDownload:
		return "StorageVolDownload"
	case ProcConnectListAllStoragePools:
		return "ConnectListAllStoragePools"
	case ProcStoragePoolListAllVolumes:
		return "StoragePoolListAllVolumes"
	case ProcDomainDefineXML:
		return "DomainDefineXML"
	case ProcDomainDefineXMLFlags:
		return "DomainDefineXMLFlags"
	case ProcDomainSetMetadata:
		return "DomainSetMetadata"
	case ProcDomainEventCallbackMetadataChange:
		return "DomainEventCallbackMetadataChange"
	}
	return fmt.Sprintf("Proc(%d)", uint32(p))
}

// ParseProc is the inverse of String for the procedures that can be called.
func ParseProc(name string) (Proc, bool) {
	for p := range procedures() {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// Procs returns the procedures that can be called, by number.
func Procs() []Proc { return slices.Sorted(maps.Keys(procedures())) }
